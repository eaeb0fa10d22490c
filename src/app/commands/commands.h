// One function per command; each stands in the file of its name. commands.cpp lists them in the order of --help.
#pragma once

#include "app/args.h"

namespace stoker {

CliCommand plan_command();
CliCommand estimate_command();
CliCommand compare_command();
CliCommand cost_command();
CliCommand deploy_command();
CliCommand catalog_command();
CliCommand explain_command();
CliCommand template_command();
CliCommand bench_command();
CliCommand doctor_command();
CliCommand calibrate_command();
CliCommand check_command();
CliCommand models_command();
CliCommand lsp_command();
CliCommand validate_command();
CliCommand simulate_command();
CliCommand up_command();
CliCommand console_command();
CliCommand serve_command();
CliCommand endpoints_command();
CliCommand run_command();
CliCommand submit_command();
CliCommand ps_command();
CliCommand logs_command();
CliCommand describe_command();
CliCommand top_command();
CliCommand gpu_command();
CliCommand agent_command();
CliCommand metrics_command();
CliCommand cancel_command();
CliCommand hold_command();
CliCommand release_command();
CliCommand evict_command();
CliCommand lease_command();
CliCommand resume_command();
CliCommand edit_command();
CliCommand exec_command();
CliCommand attach_command();
CliCommand nodes_command();
CliCommand history_command();
CliCommand export_command();
CliCommand config_command();
CliCommand usage_command();
CliCommand prepare_command();
CliCommand whatif_command();
CliCommand journal_command();
CliCommand org_command();
CliCommand project_command();
CliCommand key_command();
CliCommand quota_command();
CliCommand budget_command();
CliCommand idle_command();
CliCommand user_command();
CliCommand login_command();
CliCommand logout_command();
CliCommand policy_command();
CliCommand audit_command();
CliCommand whoami_command();
CliCommand schema_command();
CliCommand completion_command();
CliCommand keeper_command();       // internal
CliCommand slurm_step_command();   // internal
CliCommand gpu_sampler_command();  // internal

// What `stoker template list` prints, or with a name `stoker template show NAME`.
Result<CommandOutput> show_templates(Session& session, const std::string& name);

}  // namespace stoker
