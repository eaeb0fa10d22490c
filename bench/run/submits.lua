-- wrk: POST /api/v1/runs, each with a name and an Idempotency-Key of its own. TOKEN in the environment.
local count = 0
function setup(thread)
    count = count + 1
    thread:set("id", count)
end
function init()
    n = 0
    refused = 0
    headers = {
        ["Authorization"] = "Bearer " .. os.getenv("TOKEN"),
        ["Content-Type"] = "application/json",
    }
end
function request()
    n = n + 1
    headers["Idempotency-Key"] = "k-" .. id .. "-" .. n
    return wrk.format("POST", "/api/v1/runs", headers,
        '{"name":"bench-' .. id .. "-" .. n .. '","command":["python3","train.py","--epochs","10"],' ..
        '"per_rank":{"cpu_milli":1000}}')
end
function response(status)
    if status ~= 201 then refused = refused + 1 end
end
local threads = {}
local first_setup = setup
function setup(thread)
    first_setup(thread)
    threads[#threads + 1] = thread
end
function done(summary, latency)
    local refused = 0
    for _, thread in ipairs(threads) do refused = refused + thread:get("refused") end
    io.write(string.format('RESULT {"requests":%d,"us":%d,"refused":%d,"errors":%d,"p50_ms":%.3f,"p99_ms":%.3f}\n',
        summary.requests, summary.duration, refused,
        summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
