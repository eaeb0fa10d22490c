// An engine that queues, for the contract suite: a controller with a queue and numbers for its jobs, as Slurm has, over
// nodes that really run programs. It chooses the nodes, lets work wait until its clock says so, can start a part of a
// gang, forgets what has ended, hands out numbers again, and can do what it did not answer for.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "deploy/driver.h"

namespace stoker::contract {

// What stands when the server is gone: the controller, and the nodes with what their ranks have left.
class QueueController {
public:
    explicit QueueController(std::unique_ptr<Driver> nodes);
    ~QueueController();

    struct Job {
        int number = 0;
        std::string name;  // the operation
        GangSpec gang;
        double submitted_s = 0;
        std::optional<Outcome> started;  // what the nodes said; none: pending
        std::size_t ranks = 0;           // that were started
    };

    // As sbatch, squeue and scancel. Nothing is known here of what has ended and was forgotten.
    int submit(const std::string& name, const GangSpec& gang);
    std::vector<Job> queue() const;
    bool cancel_pending(const std::string& name);
    void drop(const std::string& name);
    Driver& nodes() { return *nodes_; }

    // What tests do. The clock is the engine's own; a job starts when it has waited as long as it has to.
    void wait_for(double seconds);
    void advance(double seconds);
    double now_s() const;
    void start_only(std::size_t ranks);  // of the next job, and no more of it ever
    void forget_ended();                 // as after MinJobAge
    void lose_pending();                 // as after a crash between two saves of its state
    void number_from(int number);        // and a restart hands out numbers again
    void lose_next_answer();
    bool answer_is_lost();
    bool accept_epoch(std::uint64_t epoch);  // false: a newer server was obeyed

private:
    void work();
    void start_due();

    const std::unique_ptr<Driver> nodes_;
    mutable std::mutex mutex_;  // guards what follows
    std::vector<Job> jobs_;
    std::map<std::string, int> part_of_;
    double now_s_ = 0, wait_s_ = 0;
    int next_ = 1;
    std::size_t only_ = 0;
    std::uint64_t epoch_ = 0;
    bool lose_answer_ = false, stopping_ = false;
    std::thread thread_;
};

std::unique_ptr<Driver> make_queue_driver(std::shared_ptr<QueueController> controller);

}  // namespace stoker::contract
