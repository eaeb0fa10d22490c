// The rows of the table of routes that are about quotas, budgets and what was charged.
#include "server/handlers.h"

namespace stoker::api {

using Type = Parameter::Type;

void add_limit_routes(std::vector<Route>& all) {
    all.push_back({.method = "GET",
                   .path = "/api/v1/quotas",
                   .access = Access::tenant(Action::look),
                   .operation = "listQuotas",
                   .summary = "The quotas of the levels that the caller reaches, and what is held against them.",
                   .answers = {{.description = "They.", .schema = "QuotaList"}},
                   .handler = list_quotas});
    all.push_back({.method = "POST",
                   .path = "/api/v1/quotas",
                   .access = Access::tenant(Action::administer),
                   .operation = "setQuota",
                   .summary = "Sets or ends the quota of one level and resource.",
                   .description =
                       "Of an organisation by the provider, of a project by its organisation, of a person by "
                       "the project.",
                   .body = "QuotaBody",
                   .body_required = true,
                   .answers = {{.description = "On disk; all quotas that the caller reaches.", .schema = "QuotaList"}},
                   .problems = {404, 409},
                   .changes = true,
                   .handler = set_quota});
    all.push_back({.method = "GET",
                   .path = "/api/v1/waste",
                   .access = Access::tenant(Action::look),
                   .operation = "getWaste",
                   .summary = "What was held and did nothing, by who held it and why.",
                   .description = "From what was measured: processors, disks, steps, and GPUs where somebody measures "
                                  "them. What is not known counts as busy.",
                   .query = {{.name = "from", .description = "Left out: a week before to.", .type = Type::time},
                             {.name = "to", .description = "Left out: now.", .type = Type::time},
                             {.name = "by",
                              .description = "A line for each of these and each cause.",
                              .type = Type::choice,
                              .choices = {"user", "project", "run"},
                              .otherwise = "user"}},
                   .answers = {{.description = "They, what cost most first.", .schema = "Waste"}},
                   .handler = get_waste});
    all.push_back({.method = "GET",
                   .path = "/api/v1/idle",
                   .access = Access::tenant(Action::look),
                   .operation = "listIdle",
                   .summary = "Runs that hold machines and do nothing, what becomes of them, and why.",
                   .description =
                       "By the rules under `idle` of the configuration, as of the last look, a minute ago at "
                       "most; what was parked for that and not released stands here, too.",
                   .answers = {{.description = "They.", .schema = "IdleList"}},
                   .handler = list_idle});
    all.push_back({.method = "POST",
                   .path = "/api/v1/runs/{run}/keep",
                   .access = Access::tenant(Action::steer),
                   .operation = "keepRun",
                   .summary = "Leaves a run alone for a while, however idle it is.",
                   .description = "For at most what its rule allows (`longest_hold`); 0 ends that. Who asked stands in "
                                  "the audit trail.",
                   .body = "KeepBody",
                   .body_required = true,
                   .answers = {{.description = "How it stands now.", .schema = "IdleList"}},
                   .problems = {404, 409},
                   .changes = true,
                   .handler = keep_run});
    all.push_back({.method = "GET",
                   .path = "/api/v1/budgets",
                   .access = Access::tenant(Action::look),
                   .operation = "listBudgets",
                   .summary = "The budgets of the levels that the caller reaches, and where they stand.",
                   .answers = {{.description = "They.", .schema = "BudgetList"}},
                   .handler = list_budgets});
    all.push_back(
        {.method = "POST",
         .path = "/api/v1/budgets",
         .access = Access::tenant(Action::administer),
         .operation = "setBudget",
         .summary = "Sets or ends the budget of one level.",
         .description = "Of an organisation by the provider, of a project by its organisation, of a person by "
                        "the project. Warned at 50, 80 and 100 % and when what runs will not fit, once a "
                        "month each; stopped so that the limit is overrun by less than one notice costs.",
         .body = "BudgetBody",
         .body_required = true,
         .answers = {{.description = "On disk; all budgets that the caller reaches.", .schema = "BudgetList"}},
         .problems = {404, 409},
         .changes = true,
         .handler = set_budget});
    all.push_back({.method = "GET",
                   .path = "/api/v1/invoice",
                   .access = Access::tenant(Action::look),
                   .operation = "getInvoice",
                   .summary = "What a month cost, by project, person and resource.",
                   .description = "The sum of what /api/v1/charges lists, to the micro-dollar.",
                   .query = {{.name = "month", .description = "2026-11, UTC; left out: this one."}},
                   .answers = {{.description = "The invoice.", .schema = "Invoice"}},
                   .handler = get_invoice});
    all.push_back({.method = "GET",
                   .path = "/api/v1/charges",
                   .access = Access::tenant(Action::look),
                   .operation = "listCharges",
                   .summary = "What was charged, in the order of the journal.",
                   .description = "A page looks at 5,000 records of the journal at most, and may be empty although "
                                  "there is a next one.",
                   .query = {{.name = "month", .description = "2026-11, UTC; left out: every one."},
                             {.name = "after",
                              .description = "Records after this one.",
                              .type = Type::integer,
                              .low = 0,
                              .high = 9e15,
                              .otherwise = "0"}},
                   .answers = {{.description = "A page.", .schema = "ChargeList"}},
                   .handler = list_charges});
}

}  // namespace stoker::api
