// Pulls two pages with each generated client, prints every transaction as the client has it, and then the code with which
// the service refuses a limit that is too large.
using System.Globalization;
using Microsoft.Kiota.Abstractions.Authentication;
using Microsoft.Kiota.Http.HttpClientLibrary;

const int Limit = 50;
const int TooLarge = 101;
const int Pages = 2;

var baseUrl = Setting("BASE_URL");
var key = Setting("API_KEY");
var from = DateTimeOffset.Parse(Setting("FROM"), CultureInfo.InvariantCulture);
var to = DateTimeOffset.Parse(Setting("TO"), CultureInfo.InvariantCulture);

await PullWithKiota();
await PullWithNSwag();

async Task PullWithKiota()
{
    var authentication = new ApiKeyAuthenticationProvider(key, "X-API-Key", ApiKeyAuthenticationProvider.KeyLocation.Header);
    var client = new FuelKiota.FuelClient(new HttpClientRequestAdapter(authentication) { BaseUrl = baseUrl });
    Task<FuelKiota.Models.TransactionList?> Get(int limit, string? cursor) =>
        client.Transactions.GetAsync(request =>
        {
            request.QueryParameters.From = from;
            request.QueryParameters.To = to;
            request.QueryParameters.StatusAsTransactionStatus =
                [FuelKiota.Models.TransactionStatus.CONFIRMED, FuelKiota.Models.TransactionStatus.EXTERNAL];
            request.QueryParameters.Limit = limit;
            request.QueryParameters.Cursor = cursor;
        });
    string? cursor = null;
    for (var page = 0; page < Pages; page++)
    {
        var answer = await Get(Limit, cursor);
        foreach (var one in answer!.Data!)
        {
            Print("Kiota", one.Id, one.Status, one.CreatedAt, one.ConfirmedAt, one.CorrectionReferenceId,
                one.CorporateGroup?.Name, one.Station!.Id, one.Station.Provider?.Name, one.Vehicle!.NumberPlate,
                one.FuelConsumption, one.Fuel!.Liters, one.Fuel.PricePerLiter, one.Fuel.Amount,
                one.Fees!.TotalFees, one.Fees.TotalVat, one.Fees.TotalAmount);
        }
        cursor = answer.Pagination!.NextCursor;
    }
    try
    {
        await Get(TooLarge, null);
    }
    catch (FuelKiota.Models.ErrorResponse refused)
    {
        Print("Kiota", refused.Error!.Code);
    }
}

async Task PullWithNSwag()
{
    using var http = new HttpClient();
    http.DefaultRequestHeaders.Add("X-API-Key", key);
    var client = new FuelNSwag.FuelClient(http) { BaseUrl = baseUrl };
    Task<FuelNSwag.TransactionList> Get(int limit, string? cursor) =>
        client.ListTransactionsAsync(from, to, corporate_group_id: null, corporate_id: null,
            status: [FuelNSwag.TransactionStatus.CONFIRMED, FuelNSwag.TransactionStatus.EXTERNAL], limit, cursor);
    string? cursor = null;
    for (var page = 0; page < Pages; page++)
    {
        var answer = await Get(Limit, cursor);
        foreach (var one in answer.Data)
        {
            Print("NSwag", one.Id, one.Status, one.Created_at, one.Confirmed_at, one.Correction_reference_id,
                one.Corporate_group?.Name, one.Station.Id, one.Station.Provider?.Name, one.Vehicle.Number_plate,
                one.Fuel_consumption, one.Fuel.Liters, one.Fuel.Price_per_liter, one.Fuel.Amount,
                one.Fees.Total_fees, one.Fees.Total_vat, one.Fees.Total_amount);
        }
        cursor = answer.Pagination.Next_cursor;
    }
    try
    {
        await Get(TooLarge, null);
    }
    catch (FuelNSwag.ApiException<FuelNSwag.ErrorResponse> refused)
    {
        Print("NSwag", refused.Result.Error.Code);
    }
}

static string Setting(string name) =>
    Environment.GetEnvironmentVariable(name) ?? throw new InvalidOperationException($"{name} is not set");

static void Print(string client, params object?[] values) =>
    Console.WriteLine($"{client}|{string.Join('|', values.Select(Text))}");

static string? Text(object? value) => value switch
{
    null => "null",
    DateTimeOffset time => time.UtcDateTime.ToString("yyyy-MM-dd'T'HH:mm:ss.fff'Z'", CultureInfo.InvariantCulture),
    _ => Convert.ToString(value, CultureInfo.InvariantCulture),
};
