// dotnet run Verify.cs -- SECRET HEADER [NOW] < body
using System.Globalization;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;

using var body = new MemoryStream();
Console.OpenStandardInput().CopyTo(body);
var now = args.Length > 2 ? long.Parse(args[2], CultureInfo.InvariantCulture) : (long?)null;
Console.WriteLine(Webhook.IsGenuine(args[1], body.ToArray(), args[0], now) ? "genuine" : "not genuine");

public static class Webhook
{
    const long ToleranceSeconds = 300;

    /// <param name="header">X-Service-Signature</param>
    /// <param name="rawBody">the unchanged bytes of the body</param>
    /// <param name="now">Unix seconds</param>
    public static bool IsGenuine(string? header, byte[] rawBody, string secret, long? now = null)
    {
        var hmacKey = secret.Trim();
        if (hmacKey.Length == 0) return false; // anybody could sign with it
        var match = Regex.Match(header ?? "", @"\At=([0-9]{1,12}),v1=([0-9a-f]{64})\z");
        if (!match.Success) return false;
        var t = match.Groups[1].Value;
        var seconds = now ?? DateTimeOffset.UtcNow.ToUnixTimeSeconds();
        if (Math.Abs(seconds - long.Parse(t, CultureInfo.InvariantCulture)) > ToleranceSeconds) return false;
        byte[] signed = [.. Encoding.ASCII.GetBytes(t + "."), .. rawBody];
        var expected = HMACSHA256.HashData(Encoding.UTF8.GetBytes(hmacKey), signed);
        return CryptographicOperations.FixedTimeEquals(expected, Convert.FromHexString(match.Groups[2].Value));
    }
}
