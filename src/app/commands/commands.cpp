#include "app/commands/commands.h"

namespace stoker {

const std::vector<CliCommand>& all_commands() {
    static const std::vector<CliCommand> commands = {
        plan_command(),     estimate_command(), compare_command(),   cost_command(),     deploy_command(),
        catalog_command(),  explain_command(),  template_command(),  bench_command(),    check_command(),
        lsp_command(),      doctor_command(),   calibrate_command(), prepare_command(),  simulate_command(),
        up_command(),       run_command(),      submit_command(),    ps_command(),       logs_command(),
        describe_command(), top_command(),      cancel_command(),    hold_command(),     release_command(),
        evict_command(),    lease_command(),    nodes_command(),     usage_command(),    whatif_command(),
        history_command(),  config_command(),   journal_command(),   validate_command(), schema_command(),
        org_command(),      project_command(),  key_command(),       whoami_command(),   completion_command(),
    };
    return commands;
}

const std::vector<CliCommand>& internal_commands() {
    static const std::vector<CliCommand> commands = {keeper_command(), slurm_step_command()};
    return commands;
}

}  // namespace stoker
