#include "catalog/azure_answers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "catalog/savings_plan.h"

namespace stoker {
namespace {

Document json(std::string_view text) {
    auto document = Document::parse_json(text, "answer.json");
    if (!document) ADD_FAILURE() << document.error().text();
    return std::move(document).value();
}

Document yaml(std::string_view text) {
    auto document = Document::parse_yaml(text, "cluster.yaml");
    if (!document) ADD_FAILURE() << document.error().text();
    return std::move(document).value();
}

Catalog shipped() {
    auto read = Catalog::embedded();
    if (!read) ADD_FAILURE() << read.error().text();
    return std::move(read).value();
}

constexpr std::string_view kSkus = R"([
 {"resourceType": "disks", "name": "Premium_LRS", "locations": ["eastus"]},
 {"resourceType": "virtualMachines", "name": "Standard_NC4as_T4_v3", "family": "Standard NCASv3_T4 Family", "locations": ["eastus", "WestUS2"],
  "locationInfo": [{"location": "eastus", "zones": ["3", "1", "2"]}, {"location": "WestUS2", "zones": []}],
  "capabilities": [{"name": "vCPUs", "value": "4"}, {"name": "RetirementDateUtc", "value": "2027-05-31T00:00:00Z"}],
  "restrictions": [
   {"type": "Zone", "values": ["eastus"], "reasonCode": "NotAvailableForSubscription", "restrictionInfo": {"locations": ["eastus"], "zones": ["2"]}},
   {"type": "Zone", "values": ["eastus"], "reasonCode": "NotAvailableForSubscription", "restrictionInfo": {"locations": ["eastus"], "zones": ["1"]}},
   {"type": "Location", "values": ["westus2"], "reasonCode": "QuotaId", "restrictionInfo": {"locations": ["westus2"], "zones": null}}]}])";

// Every restriction counts, in its own region, and zones come sorted without the closed ones.
TEST(ListSkus, AppliesEveryRestrictionWhereItHolds) {
    const auto offers = read_list_skus(json(kSkus));
    ASSERT_TRUE(offers.ok()) << offers.error().text();
    ASSERT_EQ(offers->size(), 2u);
    const SkuOffer& east = (*offers)[0];
    EXPECT_EQ(east.region, "eastus");
    EXPECT_EQ(east.zones, std::vector<std::string>{"3"});
    EXPECT_EQ(east.restricted_zones, (std::vector<std::string>{"1", "2"}));
    EXPECT_FALSE(east.location_restricted);
    EXPECT_EQ(east.reason_codes, std::vector<std::string>{"NotAvailableForSubscription"});
    EXPECT_EQ(east.retirement_date, "2027-05-31");
    EXPECT_EQ(east.family, "Standard NCASv3_T4 Family");
    const SkuOffer& west = (*offers)[1];
    EXPECT_EQ(west.region, "westus2");
    EXPECT_TRUE(west.location_restricted);
    EXPECT_EQ(west.reason_codes, std::vector<std::string>{"QuotaId"});
    EXPECT_TRUE(west.restricted_zones.empty());
}

// Both ways in which the API writes a date come out as one.
TEST(ListSkus, TurnsRetirementDatesRound) {
    const auto offers = read_list_skus(json(R"([{"name": "Standard_NV6", "locations": ["eastus"],
        "capabilities": [{"name": "RetirementDateUtc", "value": "08/31/2023"}]}])"));
    ASSERT_TRUE(offers.ok());
    EXPECT_EQ(offers->front().retirement_date, "2023-08-31");
}

// The REST page and the list that az prints are read alike.
TEST(ListSkus, ReadsTheRestPageToo) {
    const auto offers = read_list_skus(json("{\"value\": " + std::string(kSkus) + "}"));
    ASSERT_TRUE(offers.ok());
    EXPECT_EQ(offers->size(), 2u);
}

// Something else than an answer is refused with its place.
TEST(ListSkus, RefusesWhatIsNotAnAnswer) {
    for (std::string_view text : {"{}", "3", "[1]", R"({"value": {}})", R"([{"resourceType": "virtualMachines"}])",
                                  R"([{"name": "a", "locations": ["eastus"], "restrictions": 5}])"}) {
        EXPECT_FALSE(read_list_skus(json(text)).ok()) << text;
    }
}

// Names and regions are found whatever their case, and a listing of one region is silent about the others.
TEST(ListSkus, FindsAnOfferInAnyCase) {
    const auto offers = read_list_skus(json(kSkus));
    ASSERT_TRUE(offers.ok());
    EXPECT_NE(find_offer(*offers, "STANDARD_NC4AS_T4_V3", "East US"), nullptr);
    EXPECT_EQ(find_offer(*offers, "Standard_NC4as_T4_v3", "eastus2"), nullptr);
    EXPECT_EQ(find_offer(*offers, "Standard_NC8as_T4_v3", "eastus"), nullptr);
    EXPECT_TRUE(lists_region(*offers, "WESTUS2"));
    EXPECT_FALSE(lists_region(*offers, "westus"));
    EXPECT_EQ(find_offer(*offers, "Standard_NC4as_T4_v3", "eastus")->vcpus, 4);
}

// A size newer than the catalogue says itself what it is.
TEST(ListSkus, KeepsWhatASizeSaysOfItself) {
    const auto offers = read_list_skus(json(R"([{"name": "Standard_ND999", "locations": ["eastus"], "capabilities":
        [{"name": "GPUs", "value": "8"}, {"name": "vCPUs", "value": "128"}, {"name": "MemoryGB", "value": "1900.5"},
         {"name": "ACUs", "value": null}]}])"));
    ASSERT_TRUE(offers.ok());
    EXPECT_EQ(offers->front().gpus, 8);
    EXPECT_EQ(offers->front().vcpus, 128);
    EXPECT_EQ(offers->front().memory_gb, 1900.5);
}

// The columns of a --query, another answer, an error of Azure's: one line that says what it is and what to run.
TEST(AzureAnswers, SayWhatElseTheFileIs) {
    const auto skus = [](std::string_view text) {
        const auto offers = read_list_skus(json(text));
        return offers ? std::string("read") : offers.error().text();
    };
    const std::string columns = skus(
        R"([{"Name": "Standard_NC4as_T4_v3", "Zones": ["1"], "Restrictions": "NotAvailableForSubscription"},
            {"Name": "Standard_NC8as_T4_v3", "Zones": ["1"], "Restrictions": null}])");
    EXPECT_NE(columns.find("Name, Zones, Restrictions"), std::string::npos) << columns;
    EXPECT_NE(columns.find("--all"), std::string::npos) << columns;
    EXPECT_EQ(columns.find("is missing"), std::string::npos) << columns;
    EXPECT_NE(skus(R"([{"currentValue": 1, "limit": 2, "name": {"value": "cores"}}])").find("--usage"),
              std::string::npos);
    EXPECT_NE(skus(R"({"Items": [{"retailPrice": 1, "armSkuName": "x"}]})").find("--prices"), std::string::npos);
    EXPECT_NE(skus(R"({"error": {"code": "AuthorizationFailed", "message": "no access"}})").find("no access"),
              std::string::npos);
    const auto usage = read_list_usage(json(kSkus));
    ASSERT_FALSE(usage.ok());
    EXPECT_NE(usage.error().text().find("--skus"), std::string::npos) << usage.error().text();
    const auto nothing = read_list_usage(json(R"({"a": 1})"));
    ASSERT_FALSE(nothing.ok());
    EXPECT_NE(nothing.error().text().find("az vm list-usage --location"), std::string::npos) << nothing.error().text();
}

// az prints [] for a region it does not know: a plan that took it for "nothing is restricted" would be wrong.
TEST(AzureAnswers, RefuseAnEmptyList) {
    EXPECT_FALSE(read_list_skus(json("[]")).ok());
    EXPECT_FALSE(
        read_list_skus(json(R"([{"resourceType": "disks", "name": "Premium_LRS", "locations": ["eastus"]}])")).ok());
    EXPECT_FALSE(read_list_usage(json(R"({"value": []})")).ok());
}

// Pages appended to one file are all read; a table pasted for JSON is told as such, with the command that gives JSON.
TEST(AzureAnswers, SplitsWhatWasAppended) {
    const auto split = [](std::string_view text) { return json_values(text, AzureAnswer::skus, "x"); };
    const auto two = split("\xEF\xBB\xBF [{\"a\": \"]}\\\"\"}]\r\n{\"b\": [[]]}\n");
    ASSERT_TRUE(two.ok()) << two.error().text();
    ASSERT_EQ(two->size(), 2u);
    EXPECT_EQ((*two)[0], "[{\"a\": \"]}\\\"\"}]");
    EXPECT_EQ((*two)[1], "{\"b\": [[]]}");
    EXPECT_EQ(split("[1, 2")->size(), 1u);  // the reader tells where it breaks off
    for (std::string_view text : {"ResourceType     Locations    Name\n-----\n", "", "  \n", "<html>", "null"}) {
        const auto none = split(text);
        ASSERT_FALSE(none.ok()) << text;
        EXPECT_NE(none.error().text().find("-o json"), std::string::npos) << none.error().text();
    }
}

// Numbers come as text or as numbers, names as a mapping or as text; all mean the same.
TEST(ListUsage, ReadsBothSpellings) {
    const auto usages = read_list_usage(json(R"([
        {"currentValue": "96", "limit": "192", "localName": "Standard NCASv3_T4 Family vCPUs",
         "name": {"localizedValue": "Standard NCASv3_T4 Family vCPUs", "value": "Standard NCASv3_T4 Family"}},
        {"currentValue": 4, "limit": 100, "name": {"value": "cores", "localizedValue": "Total Regional vCPUs"}, "unit": "Count"},
        {"currentValue": 0, "limit": -1, "name": "lowPriorityCores"}])"));
    ASSERT_TRUE(usages.ok()) << usages.error().text();
    ASSERT_EQ(usages->size(), 3u);
    EXPECT_EQ((*usages)[0].family, "Standard NCASv3_T4 Family");
    EXPECT_EQ((*usages)[0].limit - (*usages)[0].current, 96);
    EXPECT_EQ((*usages)[1].label, "Total Regional vCPUs");
    EXPECT_EQ((*usages)[2].family, "lowPriorityCores");
}

TEST(ListUsage, TellsWhatIsMissing) {
    const auto usages = read_list_usage(json(R"({"value": [{"limit": "x", "name": {"value": "cores"}}, 7]})"));
    ASSERT_FALSE(usages.ok());
    EXPECT_EQ(usages.error().problems().size(), 3u) << usages.error().text();
}

// The size table, list-skus and list-usage spell a family three ways.
TEST(QuotaFamily, IsComparedWithoutCaseAndSpaces) {
    EXPECT_EQ(normalize_quota_family("Standard NCASv3_T4 Family"), normalize_quota_family("standardNCASv3_T4Family"));
    EXPECT_NE(normalize_quota_family("standardNDSH100v5Family"), normalize_quota_family("standardNDISRH200V5Family"));
}

// A page reprices its sizes: Linux on-demand, real spot and reservations; the rest is counted and left.
TEST(RetailPrices, TakesWhatPlansAreMadeWith) {
    Catalog catalog = shipped();
    const auto report = apply_retail_prices(json(R"({"BillingCurrency": "USD", "Items": [
      {"currencyCode": "USD", "retailPrice": 0.6, "armRegionName": "eastus", "productName": "Virtual Machines NCasT4 v3 Series", "skuName": "NC4as T4 v3", "meterName": "NC4as T4 v3", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Consumption", "armSkuName": "standard_nc4as_t4_V3"},
      {"currencyCode": "USD", "retailPrice": 0.2, "armRegionName": "eastus", "productName": "Virtual Machines NCasT4 v3 Series", "skuName": "NC4as T4 v3 Spot", "meterName": "NC4as T4 v3 Spot", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Consumption", "armSkuName": "Standard_NC4as_T4_v3"},
      {"currencyCode": "USD", "retailPrice": 98.32, "armRegionName": "eastus", "productName": "Virtual Machines NDsr H100 v5 Series", "skuName": "ND96isr H100 v5 Spot", "meterName": "ND96isr H100 v5 Spot", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Consumption", "armSkuName": "Standard_ND96isr_H100_v5"},
      {"currencyCode": "USD", "retailPrice": 8760.0, "armRegionName": "eastus", "productName": "Virtual Machines NCasT4 v3 Series", "skuName": "NC64as T4 v3", "meterName": "NC64as T4 v3", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Reservation", "reservationTerm": "1 Year", "armSkuName": "Standard_NC64as_T4_v3"},
      {"currencyCode": "USD", "retailPrice": 0.8, "armRegionName": "eastus", "productName": "Virtual Machines NCasT4 v3 Series Windows", "skuName": "NC4as T4 v3", "meterName": "NC4as T4 v3", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Consumption", "armSkuName": "Standard_NC4as_T4_v3"},
      {"currencyCode": "USD", "retailPrice": 0.1, "armRegionName": "eastus", "productName": "Virtual Machines NCasT4 v3 Series", "skuName": "NC4as T4 v3 Low Priority", "meterName": "NC4as T4 v3 Low Priority", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Consumption", "armSkuName": "Standard_NC4as_T4_v3"},
      {"currencyCode": "USD", "retailPrice": 1.0, "armRegionName": "eastus", "productName": "Virtual Machines X Series", "skuName": "X", "meterName": "X", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Consumption", "armSkuName": "Standard_Unheard_v9"}]})"),
                                            "2026-11-21", catalog);
    ASSERT_TRUE(report.ok()) << report.error().text();
    EXPECT_EQ(report->taken, 3);
    EXPECT_EQ(report->skipped, 3);  // Windows, low priority, and the spot price without a discount
    EXPECT_EQ(report->unknown_sizes, std::vector<std::string>{"Standard_Unheard_v9"});
    const int t4 = *catalog.find_node_type("Standard_NC4as_T4_v3");
    EXPECT_EQ(catalog.price(t4, "eastus", "linux", Pricing::on_demand)->per_hour, Usd::from_double(0.6));
    EXPECT_EQ(catalog.price(t4, "eastus", "linux", Pricing::on_demand)->provenance.as_of, "2026-11-21");
    const Price* spot = catalog.price(t4, "eastus", "linux", Pricing::spot);
    EXPECT_EQ(spot->per_hour, Usd::from_double(0.2));
    EXPECT_FALSE(spot->estimate);
    EXPECT_EQ(catalog.price(*catalog.find_node_type("Standard_ND96isr_H100_v5"), "eastus", "linux", Pricing::spot),
              nullptr);
    EXPECT_EQ(catalog.price(*catalog.find_node_type("Standard_NC64as_T4_v3"), "eastus", "linux", Pricing::reserved_1y)
                  ->per_hour,
              Usd::from_double(1));
}

// Who commits pays the cheaper of a reservation and a savings plan, and hears which of the two it is.
TEST(RetailPrices, ASavingsPlanIsAWayToReserve) {
    Catalog catalog = shipped();
    const auto page = [&](std::string_view plans, std::string_view reserved) {
        return apply_retail_prices(
            json(fmt::format(
                R"({{"Items": [{{"retailPrice": 6.98, "armRegionName": "eastus", "type": "Consumption", "meterName": "NC40", "unitOfMeasure": "1 Hour", "armSkuName": "Standard_NC40ads_H100_v5", "savingsPlan": {}}},
                {{"retailPrice": {}, "armRegionName": "eastus", "type": "Reservation", "reservationTerm": "1 Year", "meterName": "NC40", "unitOfMeasure": "1 Hour", "armSkuName": "Standard_NC40ads_H100_v5"}}]}})",
                plans, reserved)),
            "2026-11-21", catalog);
    };
    const int size = *catalog.find_node_type("Standard_NC40ads_H100_v5");
    const auto price = [&](Pricing pricing) { return catalog.price(size, "eastus", "linux", pricing); };
    const std::string_view plans =
        R"([{"retailPrice": 5.0, "unitPrice": 5.0, "term": "1 Year"}, {"retailPrice": 3.5, "unitPrice": 3.5, "term": "3 Years"}])";
    ASSERT_TRUE(page(plans, "52560").ok());  // six dollars an hour
    EXPECT_EQ(price(Pricing::reserved_1y)->per_hour, Usd::from_double(5));
    EXPECT_TRUE(price(Pricing::reserved_1y)->provenance.source.ends_with(kSavingsPlan));
    EXPECT_EQ(price(Pricing::reserved_3y)->per_hour, Usd::from_double(3.5));
    EXPECT_EQ(price(Pricing::on_demand)->per_hour, Usd::from_double(6.98));
    ASSERT_TRUE(page(plans, "35040").ok());  // four
    EXPECT_EQ(price(Pricing::reserved_1y)->per_hour, Usd::from_double(4));
    EXPECT_FALSE(price(Pricing::reserved_1y)->provenance.source.ends_with(kSavingsPlan));
    for (std::string_view wrong :
         {R"("cheap")", "[7]", R"([{"term": "1 Year"}])", R"([{"term": 1, "retailPrice": -2}])"})
        EXPECT_FALSE(page(wrong, "52560").ok()) << wrong;
}

// A hundred hours are not one, and what ended, is announced or has expired is no price of today.
TEST(RetailPrices, CountsHoursAndDays) {
    Catalog catalog = shipped();
    const auto row = [](std::string_view more, std::string_view price) {
        return "{\"currencyCode\": \"USD\", \"retailPrice\": " + std::string(price) +
               ", \"armRegionName\": \"eastus\", \"productName\": \"NCasT4\", \"skuName\": \"NC4as T4 v3\", "
               "\"serviceName\": \"Virtual Machines\", \"type\": \"Consumption\", \"armSkuName\": "
               "\"Standard_NC4as_T4_v3\", " +
               std::string(more) + "}";
    };
    const std::string page =
        "{\"Items\": [" + row(R"("meterName": "NC4as T4 v3", "unitOfMeasure": "100 Hours")", "61") + "," +
        row(R"("meterName": "NC4as T4 v3", "unitOfMeasure": "1 GB/Month")", "5") + "," +
        row(R"("meterName": "NC4as T4 v3", "effectiveEndDate": "2024-01-31T00:00:00Z")", "6") + "," +
        row(R"("meterName": "NC4as T4 v3", "effectiveStartDate": "2027-01-01T00:00:00Z")", "7") + "," +
        row(R"("meterName": "NC4as T4 v3 - Expired")", "8") +
        "], \"NextPageLink\": \"https://prices.azure.com/api/retail/prices?$skip=1000\"}";
    const auto report = apply_retail_prices(json(page), "2026-11-21", catalog);
    ASSERT_TRUE(report.ok()) << report.error().text();
    EXPECT_EQ(report->taken, 1);
    EXPECT_EQ(report->skipped, 4);
    EXPECT_TRUE(report->more_pages);
    const int t4 = *catalog.find_node_type("Standard_NC4as_T4_v3");
    EXPECT_EQ(catalog.price(t4, "eastus", "linux", Pricing::on_demand)->per_hour, Usd::from_double(0.61));
}

// Euros are not dollars, and a page of them changes nothing.
TEST(RetailPrices, RefusesAnotherCurrency) {
    Catalog catalog = shipped();
    const int t4 = *catalog.find_node_type("Standard_NC4as_T4_v3");
    const Usd before = catalog.price(t4, "eastus", "linux", Pricing::on_demand)->per_hour;
    const auto report = apply_retail_prices(
        json(
            R"({"Items": [{"currencyCode": "EUR", "retailPrice": 9, "armRegionName": "eastus", "armSkuName": "Standard_NC4as_T4_v3"}]})"),
        "2026-11-21", catalog);
    ASSERT_FALSE(report.ok());
    EXPECT_NE(report.error().text().find("EUR"), std::string::npos);
    EXPECT_EQ(catalog.price(t4, "eastus", "linux", Pricing::on_demand)->per_hour, before);
}

// A node that was bought costs its share of the price, its power and its people, over the hours it is used.
TEST(OnPrem, AmortisesWhatWasPaid) {
    Catalog catalog = shipped();
    const Document document = yaml(
        "name: rack-1\ngpu: H100-SXM\ngpus: 8\nvcpus: 96\nmemory: 1900GiB\nrdma: {gbps_per_gpu: 400, kind: "
        "infiniband}\nnvlink: yes\ncount: 4\n"
        "capex: {price: $250k, years: 4, power_watts: 10000, usd_per_kwh: 0.12, staff_per_year: $8766, utilisation: "
        "0.5, pue: 1.5}\n");
    const auto index = add_on_prem_node(document.root(), catalog);
    ASSERT_TRUE(index.ok()) << index.error().text();
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(*index)];
    EXPECT_EQ(node.available, 4);
    EXPECT_EQ(node.scale_up_domain, 8);
    EXPECT_EQ(catalog.links()[static_cast<std::size_t>(node.link_across)].name, "ib-ndr-400");
    EXPECT_EQ(catalog.links()[static_cast<std::size_t>(node.link_inside)].name, "nvlink4-h100-8");
    const Price* price = catalog.price(*index, "on-prem", "linux", Pricing::owned);
    ASSERT_NE(price, nullptr);
    EXPECT_NEAR(price->per_hour.dollars(), (250000.0 / 4 / 8766 + 10 * 1.5 * 0.12 + 1) / 0.5, 1e-5);
    EXPECT_EQ(*catalog.find_region("on-prem", "On-Prem"), "on-prem");
}

// Who has machines of one kind has no name for it.
TEST(OnPrem, IsCalledByItsGpuWhereItHasNoName) {
    Catalog catalog = shipped();
    const auto index = add_on_prem_node(yaml("{gpu: RTX 4090, gpus: 1, vcpus: 16, memory: 64GiB}").root(), catalog);
    ASSERT_TRUE(index.ok()) << index.error().text();
    EXPECT_EQ(catalog.node_types()[static_cast<std::size_t>(*index)].name, "own-rtx-4090");
    EXPECT_FALSE(add_on_prem_node(yaml("{vcpus: 16, memory: 64GiB}").root(), catalog).ok());
}

// Who has a workstation knows its boards: what is around them is assumed, and told (plan).
TEST(OnPrem, NeedsNoMoreThanItsGpus) {
    Catalog catalog = shipped();
    const auto index = add_on_prem_node(yaml("{gpu: RTX 4090, gpus: 2}").root(), catalog);
    ASSERT_TRUE(index.ok()) << index.error().text();
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(*index)];
    EXPECT_TRUE(host_is_assumed(node));
    EXPECT_EQ(node.vcpus, 16);
    EXPECT_EQ(node.cores, 8);
    EXPECT_NEAR(node.memory.v, 4 * node.accelerator_memory.v, 1);
    const auto said =
        add_on_prem_node(yaml("{gpu: RTX 4090, gpus: 1, vcpus: 12, memory: 64GiB, name: b}").root(), catalog);
    ASSERT_TRUE(said.ok());
    EXPECT_FALSE(host_is_assumed(catalog.node_types()[static_cast<std::size_t>(*said)]));
}

// A GPU that no table has is described by its memory, bandwidth and rates.
TEST(OnPrem, TakesAGpuOfItsOwn) {
    Catalog catalog = shipped();
    const Document document = yaml(
        "{name: lab, gpu: {memory: 48GB, bandwidth: 1TB/s, bf16: 150}, gpus: 2, vcpus: 32, memory: 256GB, "
        "price_per_hour: $1.20}");
    const auto index = add_on_prem_node(document.root(), catalog);
    ASSERT_TRUE(index.ok()) << index.error().text();
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(*index)];
    const Accelerator& gpu = catalog.accelerators()[static_cast<std::size_t>(node.accelerator)];
    EXPECT_TRUE(gpu.has(Precision::bf16));
    EXPECT_FALSE(gpu.has(Precision::fp8));
    EXPECT_EQ(gpu.memory_bandwidth, BytesPerSecond(1e12));
    EXPECT_GE(node.link_inside, 0);
    EXPECT_EQ(catalog.price(*index, "on-prem", "linux", Pricing::owned)->per_hour, Usd::from_double(1.2));
}

// Every mistake is told at its place, and the catalogue stays as it was.
TEST(OnPrem, TellsAllMistakesTogether) {
    Catalog catalog = shipped();
    const std::size_t nodes = catalog.node_types().size();
    const Document document = yaml(
        "name: x\ngpu: H999-SXM\ngpus: 0\nvcpu: 8\nmemory: lots\ncapex: {price: cheap}\nrdma: {kind: magic, "
        "gbps_per_gpu: 1}\n");
    const auto index = add_on_prem_node(document.root(), catalog);
    ASSERT_FALSE(index.ok());
    EXPECT_GE(index.error().problems().size(), 7u) << index.error().text();
    EXPECT_NE(index.error().text().find("write vcpus"), std::string::npos) << index.error().text();
    EXPECT_EQ(catalog.node_types().size(), nodes);
    EXPECT_FALSE(add_on_prem_node(yaml("[1]").root(), catalog).ok());
}

// Who cuts the GPUs plans with the parts: a plan with whole GPUs would promise what no container is given.
TEST(OnPrem, WhereGpusAreCutAPartIsTheMachine) {
    Catalog catalog = shipped();
    const auto index = add_on_prem_node(yaml("{name: lab, gpu: H100-SXM, gpus: 8, mig: 1g.10gb, vcpus: 224, memory: "
                                             "1792GiB, rdma: ndr, count: 2, price_per_hour: $56}")
                                            .root(),
                                        catalog);
    ASSERT_TRUE(index.ok()) << index.error().text();
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(*index)];
    ASSERT_TRUE(node.mig);
    EXPECT_EQ(node.mig->parts(), 56);
    EXPECT_EQ(node.mig->vcpus, 224);
    EXPECT_EQ(node.available, 112);
    EXPECT_NEAR(node.accelerators, 16.0 / 132, 1e-9);
    EXPECT_NEAR(node.accelerator_memory.v, 9.75 * 1024 * 1024 * 1024, 1);
    EXPECT_EQ(node.vcpus, 4);
    EXPECT_NEAR(node.memory.v, 32.0 * 1024 * 1024 * 1024, 1);
    EXPECT_EQ(node.rdma, "none") << "no network reaches into a part";
    EXPECT_EQ(catalog.price(*index, "on-prem", "linux", Pricing::owned)->per_hour, Usd::from_double(1));
}

TEST(OnPrem, TellsWhichPartsAGpuHas) {
    Catalog catalog = shipped();
    const auto other = add_on_prem_node(
        yaml("{name: x, gpu: H100-SXM, gpus: 1, mig: 1g.5gb, vcpus: 8, memory: 64GiB}").root(), catalog);
    ASSERT_FALSE(other.ok());
    EXPECT_NE(other.error().text().find("1g.10gb"), std::string::npos) << other.error().text();
    const auto whole =
        add_on_prem_node(yaml("{name: x, gpu: T4, gpus: 1, mig: 1g.5gb, vcpus: 8, memory: 64GiB}").root(), catalog);
    ASSERT_FALSE(whole.ok());
    EXPECT_NE(whole.error().text().find("T4 cannot be cut"), std::string::npos) << whole.error().text();
}

}  // namespace
}  // namespace stoker
