#include "app/commands/commands.h"

namespace stoker {

const std::vector<CommandGroup>& command_groups() {
    static const std::vector<CommandGroup> groups = {
        {"Plan",
         {plan_command(), estimate_command(), compare_command(), cost_command(), template_command(), deploy_command(),
          catalog_command(), models_command(), explain_command()}},
        {"Check", {check_command(), lsp_command(), doctor_command()}},
        {"Run",
         {run_command(), submit_command(), ps_command(), logs_command(), describe_command(), top_command(),
          cancel_command(), attach_command(), exec_command(), edit_command(), hold_command(), release_command(),
          evict_command(), lease_command(), resume_command(), whatif_command(), history_command(), export_command(),
          prepare_command()}},
        {"Serve models", {serve_command(), endpoints_command()}},
        {"Keep a server",
         {up_command(), console_command(), nodes_command(), config_command(), usage_command(), idle_command(),
          journal_command(), audit_command()}},
        {"Share it",
         {login_command(), logout_command(), whoami_command(), org_command(), project_command(), user_command(),
          key_command(), quota_command(), budget_command(), policy_command()}},
        {"See and measure",
         {gpu_command(), agent_command(), metrics_command(), bench_command(), calibrate_command(), validate_command(),
          simulate_command()}},
        {"For tools and shells", {schema_command(), completion_command()}},
    };
    return groups;
}

const std::vector<CliCommand>& all_commands() {
    static const std::vector<CliCommand> commands = [] {
        std::vector<CliCommand> all;
        for (const CommandGroup& group : command_groups())
            all.insert(all.end(), group.commands.begin(), group.commands.end());
        return all;
    }();
    return commands;
}

const std::vector<CliCommand>& internal_commands() {
    static const std::vector<CliCommand> commands = {keeper_command(), slurm_step_command(), gpu_sampler_command()};
    return commands;
}

}  // namespace stoker
