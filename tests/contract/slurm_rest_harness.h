// The Slurm engine over slurmrestd: the cluster and all the rest of the harness whose engine uses the commands, of
// which it has none.
#pragma once

#include <memory>
#include <string>

#include "contract/slurm_harness.h"
#include "contract/socket_relay.h"

namespace stoker::contract {

class SlurmRestHarness : public SlurmHarness {
public:
    SlurmRestHarness()
        : relay_(std::make_unique<SocketRelay>(socket(), cluster()->rest_url().substr(std::string("unix:").size()))) {}

    SlurmOptions options() const {
        SlurmOptions options = SlurmHarness::options();
        options.rest.url = "unix:" + socket();
        options.commands.clear();
        return options;
    }
    using SlurmHarness::make;
    std::unique_ptr<Driver> make() const { return make(options()); }
    void lose_next_answer() { relay_->lose_next_answer(); }

private:
    std::string socket() const { return scratch() + "-rest.sock"; }
    std::unique_ptr<SocketRelay> relay_;
};

}  // namespace stoker::contract
