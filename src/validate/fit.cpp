#include "validate/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "base/text.h"

namespace stoker::validate {
namespace {

using Vector = std::vector<double>;

// The coordinate of a knob in which one unit is one sigma of its prior.
double coordinate(const Knob& knob, double value) {
    if (knob.logarithmic) return std::log(value / knob.prior) / knob.sigma;
    return (value - knob.prior) / (knob.sigma * (knob.high - knob.low));
}
double value_at(const Knob& knob, double x) {
    const double value =
        knob.logarithmic ? knob.prior * std::exp(x * knob.sigma) : knob.prior + x * knob.sigma * (knob.high - knob.low);
    return std::clamp(value, knob.low, knob.high);
}

Vector values_at(const FitProblem& problem, const Vector& x) {
    Vector values(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) values[i] = value_at(problem.knobs[i], x[i]);
    return values;
}

Vector residuals_at(const FitProblem& problem, const Vector& x) {
    Vector out(problem.group_of.size());
    problem.residuals(values_at(problem, x), {}, out);
    return out;
}

// Weight of each row: its group's over the number of its rows; 0 for the group that is left out and where there is no
// prediction.
Vector row_weights(const FitProblem& problem, const Vector& residuals, std::size_t left_out, const FitOptions& o) {
    Vector rows(problem.groups.size()), weights(residuals.size());
    for (std::size_t i = 0; i < residuals.size(); ++i)
        if (std::isfinite(residuals[i])) ++rows[problem.group_of[i]];
    for (std::size_t i = 0; i < residuals.size(); ++i) {
        const std::size_t g = problem.group_of[i];
        if (std::isfinite(residuals[i]) && g != left_out) weights[i] = 1 / (rows[g] + o.small_group);
    }
    return weights;
}

double smooth(double r, double shoulder) {
    return std::sqrt(r * r + shoulder * shoulder) - shoulder;
}
double row_loss(double r, double shoulder) {
    return std::log1p(smooth(r, shoulder));
}
// d loss / d r over r: the weight of the squared residual that has the same slope.
double row_slope(double r, double shoulder) {
    return 1 / (std::sqrt(r * r + shoulder * shoulder) * (1 + smooth(r, shoulder)));
}

double loss_of(const Vector& residuals, const Vector& weights, const Vector& x, const FitOptions& o) {
    double loss = 0;
    for (std::size_t i = 0; i < residuals.size(); ++i) {
        // A row that had a prediction and lost it must not look like a gain.
        if (weights[i] > 0) loss += weights[i] * (std::isfinite(residuals[i]) ? row_loss(residuals[i], o.shoulder) : 1);
    }
    for (const double v : x) loss += 0.5 * o.prior_weight * v * v;
    return loss;
}

template <typename Job>
void in_parallel(std::size_t jobs, unsigned threads, const Job& job) {
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < jobs; i = next++) job(i);
    };
    std::vector<std::thread> pool;
    for (unsigned t = 1; t < threads; ++t) pool.emplace_back(work);
    work();
    for (std::thread& t : pool) t.join();
}

// One column for each knob: d residual / d coordinate. Away from a bound, so that it never looks flat there. Rows that
// did not move with a knob at `before` (where it is not empty) are taken not to move now: most constants are of one
// family, and most of the time goes into predicting.
std::vector<Vector> jacobian(const FitProblem& problem, const Vector& x, const Vector& at,
                             const std::vector<Vector>& before, const FitOptions& o) {
    constexpr double kStep = 0.1;  // of a sigma: discrete choices inside (tiles, algorithms) are averaged over
    std::vector<Vector> columns(x.size());
    in_parallel(x.size(), o.threads, [&](std::size_t k) {
        const Knob& knob = problem.knobs[k];
        Vector moved = x;
        const double here = value_at(knob, x[k]);
        double other = value_at(knob, x[k] + kStep);
        if (std::abs(coordinate(knob, other) - coordinate(knob, here)) < kStep / 2)
            other = value_at(knob, x[k] - kStep);
        moved[k] = coordinate(knob, other);
        const double step = moved[k] - coordinate(knob, here);
        columns[k].assign(at.size(), 0);
        if (std::abs(step) < 1e-9) return;
        std::vector<char> wanted;
        if (!before.empty()) {
            wanted.resize(at.size());
            for (std::size_t i = 0; i < at.size(); ++i) wanted[i] = before[k][i] != 0;
        }
        Vector r(at.size(), std::numeric_limits<double>::quiet_NaN());
        problem.residuals(values_at(problem, moved), wanted, r);
        for (std::size_t i = 0; i < r.size(); ++i)
            if (std::isfinite(r[i]) && std::isfinite(at[i])) columns[k][i] = (r[i] - at[i]) / step;
    });
    return columns;
}

// Symmetric positive definite A y = b by Cholesky; false where it is not.
bool solve(std::vector<Vector> a, Vector b, Vector& y) {
    const std::size_t n = b.size();
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            double sum = a[i][j];
            for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
            if (i != j) {
                a[i][j] = sum / a[j][j];
            } else if (sum > 0) {
                a[i][i] = std::sqrt(sum);
            } else {
                return false;
            }
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
    y = std::move(b);
    return true;
}

// The step that lowers the loss most if residuals were linear; knobs that would leave their bounds stop there.
Vector best_step(const FitProblem& problem, const Vector& x, const Vector& residuals, const Vector& weights,
                 const std::vector<Vector>& columns, double damping, const FitOptions& o) {
    const std::size_t n = x.size();
    Vector pull(residuals.size());
    for (std::size_t i = 0; i < residuals.size(); ++i)
        pull[i] = weights[i] > 0 && std::isfinite(residuals[i]) ? weights[i] * row_slope(residuals[i], o.shoulder) : 0;
    std::vector<Vector> normal(n, Vector(n));
    Vector gradient(n);
    for (std::size_t k = 0; k < n; ++k) {
        Vector pulled(residuals.size());
        for (std::size_t i = 0; i < residuals.size(); ++i) {
            if (pull[i] <= 0) continue;
            pulled[i] = pull[i] * columns[k][i];
            gradient[k] -= pulled[i] * residuals[i];
        }
        for (std::size_t j = 0; j <= k; ++j)
            normal[k][j] = normal[j][k] = std::inner_product(pulled.begin(), pulled.end(), columns[j].begin(), 0.0);
        gradient[k] -= o.prior_weight * x[k];
        normal[k][k] += o.prior_weight;
    }
    for (std::size_t k = 0; k < n; ++k) normal[k][k] += damping * normal[k][k];

    std::vector<bool> fixed(n);
    Vector step(n);
    for (std::size_t round = 0; round <= n; ++round) {
        std::vector<std::size_t> open;
        for (std::size_t k = 0; k < n; ++k)
            if (!fixed[k]) open.push_back(k);
        std::vector<Vector> a(open.size(), Vector(open.size()));
        Vector b(open.size()), y;
        for (std::size_t i = 0; i < open.size(); ++i) {
            b[i] = gradient[open[i]];
            for (std::size_t k = 0; k < n; ++k)
                if (fixed[k]) b[i] -= normal[open[i]][k] * step[k];
            for (std::size_t j = 0; j < open.size(); ++j) a[i][j] = normal[open[i]][open[j]];
        }
        if (!solve(a, b, y)) return Vector(n);
        bool left = false;
        for (std::size_t i = 0; i < open.size(); ++i) {
            const std::size_t k = open[i];
            const double wanted = x[k] + y[i];
            const double reached = coordinate(problem.knobs[k], value_at(problem.knobs[k], wanted));
            step[k] = reached - x[k];
            if (std::abs(reached - wanted) > 1e-9) fixed[k] = left = true;
        }
        if (!left) break;
    }
    return step;
}

// From `x` on; residuals are those at the end.
Vector descend(const FitProblem& problem, Vector x, std::size_t left_out, int iterations, const FitOptions& o,
               Vector& residuals, double& loss, std::vector<Vector> columns, int* taken) {
    residuals = residuals_at(problem, x);
    const Vector weights = row_weights(problem, residuals, left_out, o);
    loss = loss_of(residuals, weights, x, o);
    double damping = 0.01;
    for (int i = 0; i < iterations; ++i) {
        // Every fourth time from scratch: a row may have come under the influence of a knob.
        if (i > 0 || columns.empty())
            columns = jacobian(problem, x, residuals, i % 4 == 0 ? std::vector<Vector>() : columns, o);
        const double before = loss;
        bool better = false;
        for (int attempt = 0; attempt < 5 && !better; ++attempt) {
            const Vector step = best_step(problem, x, residuals, weights, columns, damping, o);
            Vector there = x;
            for (std::size_t k = 0; k < x.size(); ++k) there[k] += step[k];
            Vector r = residuals_at(problem, there);
            const double l = loss_of(r, weights, there, o);
            better = l < loss;
            if (better) {
                x = std::move(there);
                residuals = std::move(r);
                loss = l;
                damping = std::max(1e-4, damping / 5);
            } else {
                damping = std::max(0.1, damping) * 6;
            }
        }
        if (taken != nullptr) *taken = i + 1;
        if (o.progress) o.progress(fmt::format("iteration {}: loss {:.4f}", i + 1, loss));
        if (!better || before - loss < 1e-4 * before) break;
    }
    return x;
}

double median_of_values(Vector values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

}  // namespace

Knob knob_of(const Catalog& catalog, std::string_view name, bool logarithmic, double sigma) {
    catalog.constant_or_die(name);
    const Constant& c = *catalog.constant(name);
    return {.name = c.name,
            .low = c.low,
            .high = c.high,
            .prior = c.value,
            .logarithmic = logarithmic,
            .sigma = sigma,
            .note = c.note};
}

Fit fit(const FitProblem& problem, const FitOptions& options) {
    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    const std::size_t n = problem.knobs.size();
    Fit out;
    Vector x(n);
    out.before = residuals_at(problem, x);
    out.loss_before = loss_of(out.before, row_weights(problem, out.before, kNone, options), x, options);
    x = descend(problem, x, kNone, options.iterations, options, out.after, out.loss_after, {}, &out.iterations);
    const std::vector<Vector> columns = jacobian(problem, x, out.after, {}, options);
    out.left_out = out.after;

    if (options.folds) {
        std::set<std::uint32_t> present(problem.group_of.begin(), problem.group_of.end());
        for (const std::uint32_t g : present) {
            Vector r;
            double loss = 0;
            FitOptions quiet = options;
            quiet.progress = nullptr;
            const Vector mine = descend(problem, x, g, options.fold_iterations, quiet, r, loss, columns, nullptr);
            for (std::size_t i = 0; i < r.size(); ++i)
                if (problem.group_of[i] == g) out.left_out[i] = r[i];
            out.folds.push_back({g, values_at(problem, mine)});
            if (options.progress) options.progress(fmt::format("without {}: loss {:.4f}", problem.groups[g], loss));
        }
    }
    for (std::size_t k = 0; k < n; ++k) {
        const Knob& knob = problem.knobs[k];
        FittedKnob fitted{.value = value_at(knob, x[k])};
        const double range = knob.high - knob.low;
        fitted.at_bound = fitted.value <= knob.low + 1e-6 * range || fitted.value >= knob.high - 1e-6 * range;
        if (!out.folds.empty()) {
            double sum = 0, squares = 0;
            for (const auto& [group, values] : out.folds) {
                const double v = knob.logarithmic ? std::log(values[k] / fitted.value) : values[k] - fitted.value;
                sum += v;
                squares += v * v;
            }
            const double count = static_cast<double>(out.folds.size());
            fitted.spread = std::sqrt(std::max(0.0, squares / count - sum * sum / (count * count)));
        }
        std::set<std::uint32_t> groups;
        for (std::size_t i = 0; i < columns[k].size(); ++i) {
            if (std::abs(columns[k][i]) <= 0.01 * knob.sigma) continue;
            ++fitted.rows;
            groups.insert(problem.group_of[i]);
        }
        for (const std::uint32_t g : groups) fitted.groups.push_back(problem.groups[g]);
        out.knobs.push_back(std::move(fitted));
    }
    return out;
}

std::vector<FitGroup> fit_table(const FitProblem& problem, const Fit& fit) {
    std::vector<FitGroup> out;
    Vector before, after, left_out;
    for (std::size_t g = 0; g < problem.groups.size(); ++g) {
        Vector b, a, l, signs;
        for (std::size_t i = 0; i < problem.group_of.size(); ++i) {
            if (problem.group_of[i] != g || !std::isfinite(fit.after[i])) continue;
            const auto error = [](double r) { return std::abs(std::expm1(r)); };
            if (std::isfinite(fit.before[i])) b.push_back(error(fit.before[i]));
            a.push_back(error(fit.after[i]));
            if (std::isfinite(fit.left_out[i])) l.push_back(error(fit.left_out[i]));
            signs.push_back(std::expm1(fit.after[i]));
        }
        if (a.empty()) continue;
        const auto mean = [](const Vector& v) {
            return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(std::max<std::size_t>(1, v.size()));
        };
        out.push_back({.name = problem.groups[g],
                       .rows = a.size(),
                       .before = median_of_values(b),
                       .after = median_of_values(a),
                       .left_out = median_of_values(l),
                       .mean = mean(a),
                       .mean_left_out = mean(l),
                       .bias = median_of_values(signs)});
        before.push_back(out.back().before);
        after.push_back(out.back().after);
        left_out.push_back(out.back().left_out);
    }
    out.push_back({.name = "median over the groups",
                   .rows = fit.after.size(),
                   .before = median_of_values(before),
                   .after = median_of_values(after),
                   .left_out = median_of_values(left_out)});
    return out;
}

std::string fit_text(const FitProblem& problem, const Fit& fit) {
    std::string text = fmt::format("{:<28} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "median error, %", "rows",
                                   "before", "fitted", "left out", "mean", "l.o.mean", "bias");
    for (const FitGroup& g : fit_table(problem, fit)) {
        text += fmt::format("{:<28} {:>6} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>+8.1f}\n", g.name, g.rows,
                            100 * g.before, 100 * g.after, 100 * g.left_out, 100 * g.mean, 100 * g.mean_left_out,
                            100 * g.bias);
    }
    text += fmt::format("\n{:<40} {:>10} {:>10} {:>8} {:>6} {:>6}\n", "constant", "prior", "fitted", "spread", "rows",
                        "groups");
    for (std::size_t k = 0; k < fit.knobs.size(); ++k) {
        const FittedKnob& f = fit.knobs[k];
        text += fmt::format("{:<40} {:>10.4g} {:>10.4g} {:>8.3f} {:>6} {:>6}{}\n", problem.knobs[k].name,
                            problem.knobs[k].prior, f.value, f.spread, f.rows, f.groups.size(),
                            f.at_bound ? "  at its bound" : "");
    }
    return text;
}

std::string interval_text(const FitProblem& problem, const Fit& fit) {
    std::map<std::string, Vector> by_metric;
    for (std::size_t i = 0; i < problem.names.size() && i < fit.left_out.size(); ++i) {
        const std::size_t cut = problem.names[i].find(' ');
        if (cut == std::string::npos || !std::isfinite(fit.left_out[i])) continue;
        by_metric[problem.names[i].substr(cut + 1)].push_back(-fit.left_out[i]);
    }
    std::string text;
    for (auto& [metric, v] : by_metric) {
        std::sort(v.begin(), v.end());
        const auto at = [&v = v](double share) {
            return v[static_cast<std::size_t>(share * static_cast<double>(v.size() - 1))];
        };
        text += fmt::format("80 % of {} left out: x {:.2f} to x {:.2f} ({} rows)\n", metric, std::exp(at(0.1)),
                            std::exp(at(0.9)), v.size());
    }
    return text;
}

std::string residuals_tsv(const FitProblem& problem, const Fit& fit) {
    std::string text = "group\tid\tmetric\tfitted\tleft_out\n";
    for (std::size_t i = 0; i < problem.names.size() && i < fit.after.size(); ++i) {
        const std::string& name = problem.names[i];
        const std::size_t cut = name.find(' ');
        text += fmt::format("{}\t{}\t{}\t{:.4f}\t{:.4f}\n", problem.groups[problem.group_of[i]], name.substr(0, cut),
                            cut == std::string::npos ? "" : name.substr(cut + 1), fit.after[i], fit.left_out[i]);
    }
    return text;
}

std::string calibration_tsv(std::string_view name, const FitProblem& problem, const Fit& fit) {
    std::string text = fmt::format(
        "# Constants of the cost model fitted on data/validation by ./dev fit {}; they take the place of those of the\n"
        "# same name in data/catalog/defaults.tsv. spread: standard deviation over the folds, of the logarithm, or of\n"
        "# the value for shares. rows, groups: what moves with it. Written by the program; do not edit.\n"
        "name\tvalue\tspread\tscale\trows\tgroups\tnote\n",
        name);
    std::vector<std::size_t> order(fit.knobs.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return problem.knobs[a].name < problem.knobs[b].name; });
    for (const std::size_t k : order) {
        const FittedKnob& f = fit.knobs[k];
        std::string note = f.rows == 0 ? "no row moves with it: the prior" : f.at_bound ? "at its bound" : "";
        text += fmt::format("{}\t{:.4g}\t{:.3g}\t{}\t{}\t{}\t{}\n", problem.knobs[k].name, f.value, f.spread,
                            problem.knobs[k].logarithmic ? "log" : "linear", f.rows, fmt::join(f.groups, ","), note);
    }
    return text;
}

Result<FitProblem> restricted(FitProblem problem, std::span<const std::string> names) {
    std::vector<double> all;
    std::vector<std::size_t> moved;
    std::vector<Knob> knobs;
    for (const std::string& name : names) {
        const auto found = std::find_if(problem.knobs.begin(), problem.knobs.end(),
                                        [&name](const Knob& knob) { return knob.name == name; });
        if (found == problem.knobs.end())
            return Error(ErrorKind::invalid, fmt::format("no constant called {} is fitted here", name));
        moved.push_back(static_cast<std::size_t>(found - problem.knobs.begin()));
        knobs.push_back(*found);
    }
    for (const Knob& knob : problem.knobs) all.push_back(knob.prior);
    problem.knobs = std::move(knobs);
    problem.residuals = [inner = std::move(problem.residuals), all, moved](
                            std::span<const double> values, std::span<const char> wanted, std::span<double> out) {
        std::vector<double> every = all;
        for (std::size_t i = 0; i < moved.size(); ++i) every[moved[i]] = values[i];
        inner(every, wanted, out);
    };
    return problem;
}

std::string merged_calibration(std::string_view before, std::string_view now) {
    std::map<std::string, std::string, std::less<>> rows;
    std::string head;
    for (const std::string_view text : {before, now}) {
        for (const std::string_view line : split(text, '\n')) {
            if (line.empty()) continue;
            const std::string name(line.substr(0, line.find('\t')));
            if (line.front() != '#' && name != "name") {
                rows[name] = line;
            } else if (text.data() == before.data()) {
                head += std::string(line) + "\n";
            }
        }
    }
    for (const auto& [name, line] : rows) head += line + "\n";
    return head;
}

}  // namespace stoker::validate
