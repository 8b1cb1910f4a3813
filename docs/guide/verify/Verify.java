import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Java 17 and later. */
public class Verify {
    private static final long TOLERANCE_SECONDS = 300;
    private static final Pattern SIGNATURE = Pattern.compile("t=([0-9]{1,12}),v1=([0-9a-f]{64})");

    /** header: X-Service-Signature. rawBody: the unchanged bytes of the body. now: Unix seconds. */
    public static boolean isGenuine(String header, byte[] rawBody, String secret, long now)
            throws GeneralSecurityException {
        String hmacKey = secret.strip();
        if (hmacKey.isEmpty()) return false; // anybody could sign with it
        var match = SIGNATURE.matcher(header == null ? "" : header);
        if (!match.matches()) return false;
        String t = match.group(1);
        if (Math.abs(now - Long.parseLong(t)) > TOLERANCE_SECONDS) return false;
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(hmacKey.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        mac.update((t + ".").getBytes(StandardCharsets.US_ASCII));
        byte[] expected = mac.doFinal(rawBody);
        return MessageDigest.isEqual(expected, HexFormat.of().parseHex(match.group(2)));
    }

    // java Verify.java SECRET HEADER [NOW] < body
    public static void main(String[] args) throws Exception {
        long now = args.length > 2 ? Long.parseLong(args[2]) : System.currentTimeMillis() / 1000;
        boolean genuine = isGenuine(args[1], System.in.readAllBytes(), args[0], now);
        System.out.println(genuine ? "genuine" : "not genuine");
    }
}
