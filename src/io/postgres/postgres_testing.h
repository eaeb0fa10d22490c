// A real PostgreSQL for tests, in a folder of its own, on a local socket; it ends with the object.
#pragma once

#include <memory>
#include <string>

namespace stoker {

class TestPostgres {
public:
    // Why there can be none here; empty: there can.
    static std::string why_not();
    static std::unique_ptr<TestPostgres> start();
    ~TestPostgres();
    TestPostgres(const TestPostgres&) = delete;
    TestPostgres& operator=(const TestPostgres&) = delete;

    // Of a database that nobody has used.
    std::string new_database();
    std::string url(const std::string& database) const;
    // As at a restart of the service: connections break, what was acknowledged stays.
    void restart();

private:
    explicit TestPostgres(std::string folder) : folder_(std::move(folder)) {}
    bool begin();
    void end(int signal_number);

    std::string folder_;
    int pid_ = -1, databases_ = 0;
};

}  // namespace stoker
