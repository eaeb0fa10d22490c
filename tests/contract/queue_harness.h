// The queueing engine for the contract suite: on the folder, the nodes and with the look at what is left of the local
// harness.
#pragma once

#include <memory>

#include "contract/local_harness.h"
#include "contract/queue_engine.h"

namespace stoker::contract {

class QueueHarness {
public:
    QueueHarness() : controller_(std::make_shared<QueueController>(below_.make())) {}
    static Deadline soon() { return in(20); }

    std::unique_ptr<Driver> make() const { return make_queue_driver(controller_); }
    std::string scratch() const { return below_.scratch(); }
    OperationId next() { return below_.next(); }

    // What follows is for engines that queue.
    void hold_the_queue() { controller_->wait_for(1e9); }
    void let_it_start() { controller_->wait_for(0); }
    void pass(double seconds) { controller_->advance(seconds); }
    void wait_for(double seconds) { controller_->wait_for(seconds); }
    void start_only(std::size_t ranks) { controller_->start_only(ranks); }
    void forget_what_ended() { controller_->forget_ended(); }
    void lose_what_waits() { controller_->lose_pending(); }
    void number_again() { controller_->number_from(1); }
    void lose_next_answer() { controller_->lose_next_answer(); }

private:
    LocalHarness<TreeKind::process_group> below_;
    std::shared_ptr<QueueController> controller_;  // goes first
};

}  // namespace stoker::contract
