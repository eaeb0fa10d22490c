// Quantities that carry their unit in the type. All are doubles inside except money, which is an integer of
// micro-dollars.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker {

// A double with a unit. Adding two of a kind and scaling are allowed; everything else is written out where it is used.
template <typename Tag>
struct Quantity {
    double v = 0;

    constexpr Quantity() = default;
    constexpr explicit Quantity(double value) : v(value) {}
    constexpr double value() const { return v; }
    friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.v + b.v); }
    friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.v - b.v); }
    friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(a.v * k); }
    friend constexpr Quantity operator*(double k, Quantity a) { return Quantity(a.v * k); }
    friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.v / k); }
    friend constexpr double operator/(Quantity a, Quantity b) { return a.v / b.v; }
    constexpr Quantity& operator+=(Quantity b) {
        v += b.v;
        return *this;
    }
    friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
};

using Bytes = Quantity<struct BytesTag>;  // 1 GB = 1e9, 1 GiB = 2^30
using Flops = Quantity<struct FlopsTag>;  // an amount of work
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using Seconds = Quantity<struct SecondsTag>;
using Tokens = Quantity<struct TokensTag>;
using Watts = Quantity<struct WattsTag>;

inline constexpr double kKiB = 1024.0, kMiB = 1048576.0, kGiB = 1073741824.0, kGB = 1e9;

constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
    return Seconds(work.v / rate.v);
}
constexpr Seconds operator/(Bytes work, BytesPerSecond rate) {
    return Seconds(work.v / rate.v);
}

// Money. The integer never loses a micro-dollar in a sum; the largest amount is 9.2e12 dollars.
class Usd {
public:
    constexpr Usd() = default;
    static constexpr Usd micro(std::int64_t micro_dollars) {
        Usd u;
        u.micro_ = micro_dollars;
        return u;
    }
    static Usd from_double(double dollars);  // rounds half away from zero; saturates
    constexpr std::int64_t micro() const { return micro_; }
    constexpr double dollars() const { return static_cast<double>(micro_) / 1e6; }  // exact where 4.775 is
    friend constexpr Usd operator+(Usd a, Usd b) { return micro(a.micro_ + b.micro_); }
    friend constexpr Usd operator-(Usd a, Usd b) { return micro(a.micro_ - b.micro_); }
    friend Usd operator*(Usd a, double k) { return from_double(a.dollars() * k); }
    friend constexpr auto operator<=>(const Usd&, const Usd&) = default;

private:
    std::int64_t micro_ = 0;
};

// A number with what is known of its spread: an 80 % interval.
struct Range {
    double low = 0, mid = 0, high = 0;
    friend Range operator*(Range r, double k) { return {r.low * k, r.mid * k, r.high * k}; }
};

// Readers of what people write. Each refuses NaN, infinities, overflow, trailing text and a wrong unit, naming what is
// accepted.
Result<double> parse_count(std::string_view text);     // 70B, 15T, 350M, 8k, 7e9, 1_000_000
Result<Bytes> parse_bytes(std::string_view text);      // 80GB, 80GiB, 512MiB, 1.5TB
Result<Seconds> parse_seconds(std::string_view text);  // 90m, 7d, 500ms, 1h30m, 14 days
Result<Usd> parse_usd(std::string_view text);          // $20k, 200 USD, 1.5M, $0.53

// Writers: short, for people; the same input always gives the same text.
std::string format_count(double count);     // 70B, 1.5T, 8,192
std::string format_bytes_gib(Bytes bytes);  // 18.9 GiB
std::string format_seconds(
    Seconds seconds);  // 9.8 d, 25 h, 44 min, 5.31 s, 212 ms; what two parts say exactly is said so: 3 h 12 min
std::string format_usd(Usd usd);                               // $81,400   $98.32   $0.0084: with cents below 1,000
std::string format_thousands(double value, int decimals = 0);  // 12,900

}  // namespace stoker
