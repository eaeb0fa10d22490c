#include "server/server_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "catalog/geography.h"
#include "deploy/engines/engines.h"
#include "io/store/object_store_url.h"
#include "run/state/config_history.h"
#include "server/node_file.h"
#include "server/webhook.h"

namespace stoker {
namespace {

// Parts that other readers understand are kept as they stand until those are asked.
struct ServerForm : ServerConfig {
    const Node* node_list = nullptr;
    const Node* price_book = nullptr;
};

FieldInfo record_field(std::string type, std::string description, std::shared_ptr<const RecordInfo> record) {
    FieldInfo info;
    info.type = std::move(type);
    info.description = std::move(description);
    info.record = std::move(record);
    return info;
}

RecordTable<BackupForm> backup_form_table() {
    RecordTable<BackupForm> table("backup",
                                  "Copies of the journal in an object store, made beside the running server. "
                                  "Keys are read from the environment of the server, never from this file.");
    table
        .text("to", &BackupForm::to, "s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or file:///FOLDER.",
              "s3://backups/stoker")
        .required();
    table.other_names({"url", "store", "destination"});
    table.seconds("every", &BackupForm::every, "How often; 1h when nothing is said.", "30m", 1, kMostBackupEveryS);
    table.other_names({"interval", "schedule"});
    table.count("keep", &BackupForm::keep, "Copies of this server that are kept there; 24 when nothing is said.", "48",
                1, 1e6);
    table.other_names({"retain"});
    return table;
}

RecordTable<WebhookForm> webhook_form_table() {
    RecordTable<WebhookForm> table("webhook",
                                   "Where it is told what a budget reached: a signed POST for each, tried again when "
                                   "nobody takes it.");
    table.text("url", &WebhookForm::url, "With its path.", "https://chat.example.org/hooks/stoker").required();
    table
        .text("secret_file", &WebhookForm::secret_file,
              "A file with the secret of the signature, read at the start: Stoker-Signature is t=UNIX,v1=HEX, the "
              "HMAC-SHA256 of UNIX, a full stop and the body.",
              "/etc/stoker/webhook.secret")
        .required();
    return table;
}

RecordTable<NotifyForm> notify_form_table() {
    RecordTable<NotifyForm> table("notify",
                                  "Whom runs may have told that they have ended (stoker submit --notify). Signed as "
                                  "the webhook is, where there is one.");
    table.text("program", &NotifyForm::program,
               "What `--notify program` means: it is run on the server with the notice as JSON on its input; none "
               "when nothing is said.",
               "/usr/local/bin/tell-the-team");
    table.list_of_text("urls", &NotifyForm::urls,
                       "How addresses may begin that a POST is sent to; every one when nothing is said.",
                       "[\"https://chat.example.org/\"]");
    table.list_of_text("budgets", &NotifyForm::budgets,
                       "Who gets a mail when a budget reaches a mark, beside the webhook.", "finance@example.org");
    table.list_of_text("idle", &NotifyForm::idle,
                       "Who gets a mail when a run does nothing, and when it is parked or ended for that, beside whom "
                       "the run itself names.",
                       "platform@example.org");
    table.text(
        "sendmail", &NotifyForm::sendmail,
        "The program that sends mails: it is given -i -- ADDRESS and the mail on its input; sendmail when nothing "
        "is said.",
        "/usr/sbin/sendmail");
    return table;
}

RecordTable<BudgetsForm> budgets_form_table() {
    RecordTable<BudgetsForm> table("budgets",
                                   "In which order work is stopped where a budget runs out (stoker budget set).");
    table.seconds(
        "lower_first", &BudgetsForm::lower_first,
        "What stands lower is told to stop so much sooner that what stands above it could go on for this long on "
        "what is left: spot before interactive before guaranteed, and of one class the lower priority first. All "
        "at once when nothing is said.",
        "1h", 1, kMostBackupEveryS);
    return table;
}

RecordTable<KeysForm> keys_form_table() {
    RecordTable<KeysForm> table("keys", "Keys that people make for themselves (stoker key make), without an admin.");
    table.seconds("own_longest", &KeysForm::own_longest,
                  "How long such a key may hold; one that says nothing holds so long. 0s: an admin makes all keys; 90d "
                  "when nothing is said.",
                  "30d", 0, kMostBackupEveryS);
    return table;
}

const RecordTable<ServerForm>& server_form_table() {
    static const RecordTable<ServerForm> table = [] {
        RecordTable<ServerForm> t(
            "server",
            "What a server is told to be: stoker up --config FILE, stoker config set FILE. What is not "
            "written stays as the options of stoker up and the defaults have it.");
        t.custom("nodes",
                 record_field("list of node", "The machines it gives work to; this machine when nothing is said.",
                              node_entry_record()),
                 [](const Node& node, ServerForm& form, Problems&) { form.node_list = &node; });
        t.other_names({"machines", "hosts"});
        t.count("virtual_nodes", &ServerForm::virtual_nodes, "In place of nodes: this machine as so many equal ones.",
                "2", 1, 1000);
        t.custom("prices",
                 record_field("price book", "What machines cost, for stoker usage and the cost of runs.",
                              price_book_record()),
                 [](const Node& node, ServerForm& form, Problems&) { form.price_book = &node; });
        t.other_names({"price_book", "costs"});
        t.count("max_queued", &ServerForm::max_queued,
                "Runs that may wait; more are refused, to be tried again later. 50000 when nothing is said.", "50000",
                1, kMostKeptRuns);
        t.count("max_ended", &ServerForm::max_ended,
                "Runs that are kept after their end; the oldest go first, and the journal keeps all. 0: no limit; "
                "100000 when nothing is said.",
                "100000", 0, kMostKeptRuns);
        t.seconds("keep_ended", &ServerForm::keep_ended, "And for how long at most; no limit when nothing is said.",
                  "30d", kLeastKeepEndedS, kMostKeepEndedS);
        t.other_names({"retention"});
        t.record("backup", &ServerForm::backup, backup_form_table(),
                 "Copies of the journal in an object store; none when nothing is said.");
        std::vector<std::pair<std::string, PlacementPolicy>> policies;
        for (const PlacementPolicy policy : all_placement_policies())
            policies.emplace_back(std::string(to_string(policy)), policy);
        t.choice("policy", &ServerForm::policy, std::move(policies),
                 "Which of the nodes with room a rank gets; best-fit when nothing is said.", "best-fit");
        t.other_names({"placement", "scheduler"});
        t.choice("health_gate", &ServerForm::health_gate,
                 {{"off", GateChoice::off}, {"quick", GateChoice::quick}, {"full", GateChoice::full}},
                 "How nodes are checked before they take gangs; when nothing is said quick where a node names a "
                 "doctor, else off.",
                 "quick");
        t.other_names({"health_check", "gate"});
        t.number("rate", &ServerForm::rate,
                 "Requests a second that one client may make; 0: any number. No limit on loopback, 1000 elsewhere when "
                 "nothing is said. Holds after a restart.",
                 "1000", 0, kMostRate);
        t.other_names({"rate_limit", "requests_per_second"});
        std::vector<std::pair<std::string, LogLevel>> levels;
        for (const auto& [level, word] : enum_names(LogLevel{})) levels.emplace_back(std::string(word), level);
        t.choice("log_level", &ServerForm::log_level, std::move(levels),
                 "What it says of itself: debug (each request), info, warn, error or off; info when nothing is said.",
                 "debug");
        t.choice("log_format", &ServerForm::log_format, {{"logfmt", LogFormat::logfmt}, {"json", LogFormat::json}},
                 "One line an event; logfmt when nothing is said.", "json");
        t.record("engine", &ServerForm::engine, engine_form_table(),
                 "What carries the work out; this machine when nothing is said. Holds after a restart.");
        t.list_of(
            "engines", &ServerForm::engines, engine_beside_table(),
            "Further ones, beside that: a run goes to the one where it starts first, or to the one that it names. "
            "Of two that are equal the first of the list; holds after a restart.");
        t.record("webhook", &ServerForm::webhook, webhook_form_table(),
                 "Who is told what budgets reach; nobody when nothing is said. Holds after a restart.");
        t.list_of("admission", &ServerForm::admission, admission_rule_table(),
                  "Which runs are taken: what each must do, and who it is about; every run when nothing is said.");
        t.other_names({"rules", "policies"});
        t.list_of("idle", &ServerForm::idle, idle_rule_table(),
                  "What becomes of runs that hold machines and do nothing; nothing when nothing is said.");
        t.other_names({"idle_rules", "reclaim", "culling"});
        t.list_of("tokens", &ServerForm::tokens, token_account_table(),
                  "Accounts of gateways whose tokens are charged to projects here, beside machines; none when nothing "
                  "is said.");
        t.other_names({"gateways", "ledgers"});
        t.record("budgets", &ServerForm::budgets, budgets_form_table(),
                 "In which order work is stopped where a budget runs out; all at once when nothing is said.");
        t.record("keys", &ServerForm::keys, keys_form_table(),
                 "Keys that people make for themselves; 90 days at most when nothing is said.");
        t.record("notify", &ServerForm::notify, notify_form_table(),
                 "Whom runs may have told that they have ended; a mail or any address when nothing is said. Holds "
                 "after a restart.");
        t.record("oidc", &ServerForm::oidc, oidc_form_table(),
                 "Single sign-on; passwords, keys and certificates alone when nothing is said. Holds after a restart.");
        t.other_names({"sso", "openid", "login"});
        t.text("azure_events", &ServerForm::azure_events,
               "Scheduled events of Azure, which announce evictions: auto (on its VMs), off, or a URL. Holds after a "
               "restart.",
               "auto");
        return t;
    }();
    return table;
}

void add_all(Problems& problems, const Error& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
}

}  // namespace

std::string first_engine(const ServerConfig& config) {
    return config.engine ? name_of_engine(*config.engine) : name_of_engine({});
}

std::shared_ptr<const AdmissionPolicy> admission_policy(const ServerConfig& config) {
    if (config.admission.empty()) return nullptr;
    AdmissionPolicy policy{.rules = config.admission, .engines = {}, .lies_in = same_geography};
    if (config.engine) policy.engines.push_back({first_engine(config), config.engine->region});
    for (const EngineForm& each : config.engines) policy.engines.push_back({each.name, each.region});
    return std::make_shared<const AdmissionPolicy>(std::move(policy));
}

bool says_nothing(std::string_view text) {
    const auto lines = split_lines(text);
    return std::all_of(lines.begin(), lines.end(),
                       [](std::string_view line) { return trim(line).empty() || trim(line).starts_with('#'); });
}

Result<ServerConfig> read_server_config(std::string_view text, const std::string& name, const CatalogSource& catalog) {
    if (text.size() > kMostConfigBytes)
        return Error(ErrorKind::invalid,
                     fmt::format("the configuration has {} bytes, at most {} are taken", text.size(), kMostConfigBytes),
                     {name, 0, 0});
    if (says_nothing(text)) return ServerConfig{};
    TRY(const Document document, Document::parse_yaml(text, name));
    const Node& root = document.root();
    Problems problems;
    ServerForm form = server_form_table().read(root, problems);
    if (form.node_list != nullptr) {
        if (!form.node_list->is_sequence() || form.node_list->items.empty()) {
            problems.push_back({"nodes: expected a list with at least one node",
                                "write for example nodes: [{name: rack-1, vcpus: 96, memory: 512GiB}]",
                                form.node_list->pos});
        } else {
            TRY(Catalog known, catalog ? catalog() : Catalog::embedded());
            form.nodes = read_nodes(*form.node_list, known, problems);
        }
        if (form.virtual_nodes)
            problems.push_back(
                {"virtual_nodes: the nodes are listed already", "keep one of the two", form.at.at("virtual_nodes")});
    }
    if (form.price_book != nullptr) {
        if (auto book = PriceBook::read(*form.price_book))
            form.prices = std::move(*book);
        else
            add_all(problems, book.error());
    }
    if (form.backup && !form.backup->to.empty())
        if (const auto url = read_object_url(form.backup->to); !url)
            problems.push_back({"backup.to: " + url.error().message(), url.error().problems().front().remedy,
                                form.backup->at.at("to")});
    if (form.webhook && !form.webhook->url.empty())
        if (const auto target = webhook_target(form.webhook->url); !target)
            problems.push_back({"webhook.url: " + target.error().message(), target.error().problems().front().remedy,
                                form.webhook->at.at("url")});
    if (form.engine) {
        const EngineChoice chosen = engine_choice(*form.engine, problems);
        static_cast<EngineChoice&>(*form.engine) = chosen;
        if (chosen.kind != "local" && (form.nodes || form.virtual_nodes))
            problems.push_back({"nodes: this engine knows its nodes itself", "leave nodes out",
                                form.at.at(form.virtual_nodes ? "virtual_nodes" : "nodes")});
    }
    check_admission_rules(form.admission, problems);
    if (form.oidc) check_oidc(*form.oidc, problems);
    check_idle_rules(form.idle, problems);
    check_token_accounts(form.tokens, problems);
    if (form.notify)
        for (const auto& [key, addresses] :
             {std::pair("budgets", &form.notify->budgets), std::pair("idle", &form.notify->idle)})
            for (const std::string& each : *addresses) {
                RunSpec told;  // which knows what a mail address is
                told.name = "told";
                told.command = {"true"};
                told.notify = {{std::string(kNotifyMail) + each, NotifyOn::any}};
                if (!check_run_spec(told))
                    problems.push_back({fmt::format("notify.{}: '{}' is no mail address", key, printable(each, 80)),
                                        "finance@example.org", form.notify->at.at(key)});
            }
    for (const AdmissionRule& rule : form.admission)
        for (const std::string& place : rule.residency)
            if (!is_place(place))
                problems.push_back({fmt::format("admission: no region is known to lie in {}", printable(place, 60)),
                                    "a geography (Europe), a country (Germany) or eu", rule.at.at("residency")});
    if (!form.engines.empty()) {
        const std::vector<EngineChoice> chosen = engine_choices(
            form.engine ? static_cast<const EngineChoice&>(*form.engine) : EngineChoice(), form.engines, problems);
        for (std::size_t i = 0; i < chosen.size(); ++i) static_cast<EngineChoice&>(form.engines[i]) = chosen[i];
    }
    if (form.azure_events && *form.azure_events != "auto" && *form.azure_events != "off" &&
        !form.azure_events->starts_with("http://") && !form.azure_events->starts_with("https://"))
        problems.push_back({"azure_events: expected auto, off or a URL, found " + printable(*form.azure_events, 60), "",
                            form.at.at("azure_events")});
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return static_cast<ServerConfig&&>(form);
}

const RecordInfo& server_config_record() {
    return server_form_table().info();
}

std::string server_config_reference() {
    return "# Configuration of a server\n\nGenerated by `stoker schema server-reference`; the JSON Schema for editors "
           "is "
           "what\n`stoker schema server` prints. How versions, differences and the way back work stands in\n"
           "[the guide](../guides/server-configuration.md).\n\n" +
           server_config_record().reference_markdown();
}

}  // namespace stoker
