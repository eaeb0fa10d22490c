// The handlers of the routes. Each runs on the pool with its parameters checked.
#pragma once

#include "govern/price_book.h"
#include "server/router.h"
#include "server/views.h"

namespace stoker {
struct IdleStand;
}

namespace stoker::api {

void get_health(Service&, const ExchangePtr&);
void get_ready(Service&, const ExchangePtr&);
void get_metrics_text(Service&, const ExchangePtr&);
void get_openapi(Service&, const ExchangePtr&);
void get_version(Service&, const ExchangePtr&);
void post_backup(Service&, const ExchangePtr&);

void list_runs(Service&, const ExchangePtr&);
void submit_run(Service&, const ExchangePtr&);
void get_run(Service&, const ExchangePtr&);
void cancel_run(Service&, const ExchangePtr&);
void hold_run(Service&, const ExchangePtr&);
void release_run(Service&, const ExchangePtr&);
void edit_run(Service&, const ExchangePtr&);
void evict_run(Service&, const ExchangePtr&);
void renew_lease(Service&, const ExchangePtr&);
void resume_run(Service&, const ExchangePtr&);
void ask_what_if(Service&, const ExchangePtr&);

void get_logs(Service&, const ExchangePtr&);
void get_run_metrics(Service&, const ExchangePtr&);
void get_series(Service&, const ExchangePtr&);
void get_explanation(Service&, const ExchangePtr&);
void list_artifacts(Service&, const ExchangePtr&);
void get_artifact(Service&, const ExchangePtr&);
void get_checkpoints(Service&, const ExchangePtr&);

void get_events(Service&, const ExchangePtr&);
void get_run_events(Service&, const ExchangePtr&);
void list_nodes(Service&, const ExchangePtr&);
void drain_node(Service&, const ExchangePtr&);
void ready_node(Service&, const ExchangePtr&);
void repaired_node(Service&, const ExchangePtr&);
void check_node(Service&, const ExchangePtr&);
void report_gpus(Service&, const ExchangePtr&);
void list_gpus(Service&, const ExchangePtr&);
void get_node_gpus(Service&, const ExchangePtr&);
void get_gpu_series(Service&, const ExchangePtr&);
void add_gpu_metrics(const GpuFleet& fleet, MetricsText& out);
struct NodeGpusItem;
NodeGpusItem item_of(const NodeGpusNow& told);
void get_usage(Service&, const ExchangePtr&);

void plan_file(Service&, const ExchangePtr&);
void run_of_file(Service&, const ExchangePtr&);
void list_templates(Service&, const ExchangePtr&);
void list_endpoints(Service&, const ExchangePtr&);
void get_endpoint(Service&, const ExchangePtr&);
void deploy_endpoint(Service&, const ExchangePtr&);
void scale_endpoint(Service&, const ExchangePtr&);
void stop_endpoint(Service&, const ExchangePtr&);
void start_endpoint(Service&, const ExchangePtr&);
void roll_back_endpoint(Service&, const ExchangePtr&);

void get_config(Service&, const ExchangePtr&);
void list_config_versions(Service&, const ExchangePtr&);
void get_config_version(Service&, const ExchangePtr&);
void put_config(Service&, const ExchangePtr&);
void roll_config_back(Service&, const ExchangePtr&);

void get_caller(Service&, const ExchangePtr&);
void list_organisations(Service&, const ExchangePtr&);
void make_organisation(Service&, const ExchangePtr&);
void list_projects(Service&, const ExchangePtr&);
void make_project(Service&, const ExchangePtr&);
void list_keys(Service&, const ExchangePtr&);
void make_key(Service&, const ExchangePtr&);
void revoke_key(Service&, const ExchangePtr&);
void rotate_key(Service&, const ExchangePtr&);
void log_in(Service&, const ExchangePtr&);
void get_waste(Service&, const ExchangePtr&);
void list_idle(Service&, const ExchangePtr&);
void keep_run(Service&, const ExchangePtr&);
void get_sign_on(Service&, const ExchangePtr&);
void sign_on(Service&, const ExchangePtr&);
void log_out(Service&, const ExchangePtr&);
void set_up(Service&, const ExchangePtr&);
void set_own_password(Service&, const ExchangePtr&);
void list_users(Service&, const ExchangePtr&);
void make_user(Service&, const ExchangePtr&);
void bind_role(Service&, const ExchangePtr&);
void set_user_password(Service&, const ExchangePtr&);
void disable_user(Service&, const ExchangePtr&);
void list_audit(Service&, const ExchangePtr&);
void list_admission(Service&, const ExchangePtr&);
void test_admission(Service&, const ExchangePtr&);
struct Caller;
Caller caller_view(const EngineView& view, const Actor& actor);
struct QuotaList;
struct BudgetList;
QuotaList all_quotas(const EngineView& view);
BudgetList all_budgets(const EngineView& view, const std::shared_ptr<const PriceBook>& prices);
std::string_view state_of_idle(const IdleStand& stand, std::int64_t now_us);  // idle, told, kept, parked
void list_quotas(Service&, const ExchangePtr&);
void set_quota(Service&, const ExchangePtr&);
void list_budgets(Service&, const ExchangePtr&);
void set_budget(Service&, const ExchangePtr&);
void get_invoice(Service&, const ExchangePtr&);
void list_charges(Service&, const ExchangePtr&);

// None: an empty book.
Result<PriceBook> read_prices(const std::string& file);
// Sends the outcome of a command about a run; a version asked for with If-Match that was not met is 412.
std::function<void(Result<Ack>)> answer_of(Service& service, const ExchangePtr& exchange, RunId run,
                                           std::optional<std::uint64_t> version);
// What would happen to it now.
// By the rules of admission in force; denied, as the core would answer.
Status would_be_taken(Service& service, const Actor& actor, const RunSpec& spec);
void say_what_if(Service& service, const ExchangePtr& exchange, RunSpec spec);
void submit_spec(Service& service, const ExchangePtr& exchange, RunSpec spec, std::string key, bool held = false);

}  // namespace stoker::api
