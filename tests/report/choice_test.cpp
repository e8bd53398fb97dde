#include "src/report/choice.hpp"

#include <doctest/doctest.h>

#include "ftax/error.hpp"
#include "tests/failure.hpp"

using namespace ftax;
using namespace ftax::report;

namespace {

Choice choice(const char* device, double latency_s, double spread, std::int64_t batch = 1) {
    return {.device = device,
            .framework = "engine",
            .precision = "fp16",
            .batch = batch,
            .latency_s = latency_s,
            .items_per_s = static_cast<double>(batch) / latency_s,
            .low = 1 / spread,
            .high = spread};
}

std::string verdict_of(std::vector<Choice> rows, Ranking ranking = {.by = Criterion::latency}) {
    rank_rows(rows, ranking);
    return ranking.verdict;
}

}  // namespace

TEST_CASE("the verdict is a tie where the interval of the ratio reaches 1") {
    // ln 1.1 = 0.095 each: together 0.135, a ratio of 1.144.
    CHECK(verdict_of({choice("a", 1.1e-3, 1.1), choice("b", 1e-3, 1.1)}) ==
          "tie: b: 1.00 ms (909 µs to 1.10 ms), 1000 items/s; next: a at 1.10 times that (0.961 to 1.26)");
    CHECK(verdict_of({choice("a", 1.2e-3, 1.1), choice("b", 1e-3, 1.1)}) ==
          "best: b: 1.00 ms (909 µs to 1.10 ms), 1000 items/s; next: a at 1.20 times that (1.05 to 1.37)");
    CHECK(verdict_of({choice("a", 1e-3, 1), choice("b", 1e-3, 1), choice("c", 1e-3, 1)})
              .ends_with("and 1 more within the intervals"));
}

TEST_CASE("the verdict of a tie names the choice that rests on the nearest rows") {
    const auto rated = [](const char* device, double latency_s, Evidence evidence) {
        Choice rated = choice(device, latency_s, 1.2);
        rated.rests_on = evidence;
        return rated;
    };
    const Choice first = rated("a", 1e-3, Evidence::far), later = rated("d", 1.05e-3, Evidence::measured);
    CHECK(verdict_of({first, rated("b", 1.02e-3, Evidence::near), later, rated("c", 1.01e-3, Evidence::guess)})
              .ends_with("and 2 more within the intervals; of these d is `measured`, the first is `far`"));
    CHECK(verdict_of({first, rated("d", 2e-3, Evidence::measured)}).starts_with("best: a: "));
    CHECK(verdict_of({first, rated("d", 2e-3, Evidence::measured)}).find("measured") == std::string::npos);
    CHECK(verdict_of({first, rated("e", 1.05e-3, Evidence::unrated)}).find("unrated") == std::string::npos);
    CHECK(verdict_of({later, rated("a", 1.06e-3, Evidence::near)}).find("of these") == std::string::npos);
}

TEST_CASE("the verdict of throughput counts more as better, that of a pace of its own has no interval") {
    const Ranking throughput{.by = Criterion::throughput};
    CHECK(verdict_of({choice("a", 1e-3, 1.1, 2), choice("b", 1e-3, 1.1, 4)}, throughput) ==
          "best: b, batch 4: 4000 (3636 to 4400) items/s, latency 1.00 ms; next: a, batch 2 at 0.500 times that "
          "(0.437 to 0.572)");
    std::vector<Choice> paced{choice("a", 1e-3, 1.5), choice("b", 1e-3, 1.5)};
    for (Choice& one : paced) one.is_paced = true;
    paced[0].dollars_per_hour = 1.1;
    paced[1].dollars_per_hour = 1;
    CHECK(verdict_of(paced, {.by = Criterion::cost, .items = "requests"}) ==
          "best: b: 0.278 $ per million requests, 1000 requests/s, latency 1.00 ms; next: a at 1.10 times that");
    paced[0].dollars_per_hour = 1;  // as many requests for as much: the latency decides
    paced[1].latency_s = 0.9e-3;
    CHECK(verdict_of(paced, {.by = Criterion::cost, .items = "requests"}) ==
          "tie: b: 0.278 $ per million requests, 1000 requests/s, latency 900 µs; next: a at 1.00 times that");
}

TEST_CASE("a saturated server ranks behind every other under every order, and is never named best") {
    // Two cards cannot keep up; one of the others is slower and costs more.
    std::vector<Choice> servers(3, choice("a", 10, 1.1));
    for (Choice& server : servers) {
        server.is_paced = true;
        server.energy_per_item_j = server.memory_bytes = server.first_token_s = server.per_token_s = 1;
        server.dollars_per_hour = server.cards = 8;
    }
    servers[0].cards = 2;
    servers[0].dollars_per_hour = 2;
    servers[0].is_saturated = true;
    servers[0].is_paced = false;
    servers[0].latency_s = servers[0].energy_per_item_j = servers[0].memory_bytes = servers[0].first_token_s =
        servers[0].per_token_s = 0.1;
    servers[0].items_per_s = 1e6;
    servers[2].device = "b";
    servers[2].keeps_level = false;
    std::vector<Ranking> rankings{{.by = Criterion::latency, .fewest_cards = true}};
    for (const std::string& name : criterion_names()) rankings.push_back({.by = criterion_from_name(name)});
    for (Ranking& ranking : rankings) {
        std::vector<Choice> rows = servers;
        rank_rows(rows, ranking);
        CHECK(rows.back().is_saturated);
        CHECK(rows.front().keeps_level);
        CHECK_MESSAGE(ranking.verdict.find("a, 8 cards: ") < 7, ranking.verdict);
        CHECK_MESSAGE(ranking.verdict.find("each of") == std::string::npos, ranking.verdict);
    }
    // Where none keeps up, the one that serves most is the nearest, without a lead over the others.
    std::vector<Choice> all{servers[0], servers[0]};
    all[1].cards = 4;
    all[1].items_per_s = 2.5e6;
    all[1].latency_s = 0.2;
    Ranking& by_default = rankings.front();
    rank_rows(all, by_default);
    CHECK(by_default.verdict ==
          "none keeps up with the requests; closest: 4 cards: 200 ms (182 ms to 220 ms), 2500000 items/s; each of 4 "
          "cards "
          "does 125 % of what it does in 2");
    CHECK(order_text({.by = Criterion::latency, .fewest_cards = true, .latency = "p99 latency"}) ==
          "order: fewest cards, then p99 latency");
    CHECK(order_text({.by = Criterion::cost, .has_level = true}) == "order: SLO kept, cost");
}

TEST_CASE("batches are not ranked among each other unless something asks for it") {
    CHECK(verdict_of({choice("a", 1e-3, 1.1, 1), choice("b", 2e-3, 1.1, 1), choice("a", 4e-3, 1.1, 8),
                      choice("b", 8e-3, 1.1, 8), choice("a", 30e-3, 1.1, 64), choice("b", 29e-3, 1.1, 64)},
                     {}) ==
          "best at batch 1 to 8: a, 2.00 times ahead; at 64: b, 1.03 times ahead, a tie within the 90 % intervals");
    CHECK(verdict_of({choice("a", 1e-3, 1.1, 1), choice("b", 3e-3, 1.1, 1), choice("a", 4e-3, 1.1, 8),
                      choice("b", 8e-3, 1.1, 8), choice("a", 1e-2, 1.1, 16), choice("b", 4e-2, 1.1, 16),
                      choice("a", 3e-2, 1.1, 64), choice("b", 9e-2, 1.1, 64)},
                     {}) == "best at batch 1 to 64: a, 2.00 to 4.00 times ahead");
    std::vector<Choice> rows{choice("a", 3e-3, 1, 4), choice("b", 2e-3, 1, 1), choice("a", 1e-3, 1, 1)};
    Ranking by_batch;
    rank_rows(rows, by_batch);
    CHECK(rows[0].batch == 4);  // given first
    CHECK(rows[1].device == "a");
}

TEST_CASE("rows that run, meet the SLO and fit rank before those that do not, regardless of speed") {
    std::vector<Choice> rows(4, choice("a", 1e-3, 1));
    rows[0].skipped = "no such arithmetic";
    rows[1].fits = false;
    rows[2].keeps_level = false;
    rows[3].latency_s = 1;
    Ranking ranking{.by = Criterion::latency};
    rank_rows(rows, ranking);
    CHECK(rows[0].latency_s == 1);
    CHECK_FALSE(rows[1].fits);
    CHECK_FALSE(rows[2].keeps_level);
    CHECK_FALSE(rows[3].runs());
    CHECK(reasons_of(choices_of(rows)) == std::vector<std::string>{"engine on a, fp16: no such arithmetic"});
    CHECK(ranking.verdict == "engine on a: 1.00 s, 1000 items/s");
}

TEST_CASE("each card's share is against the fewest cards") {
    std::vector<Choice> rows(2, choice("a", 1e-3, 1));
    rows[1].cards = 4;
    rows[1].latency_s = 0.5e-3;
    rows[1].items_per_s = 2000;
    CHECK(verdict_of(rows).ends_with("; each of 4 cards does 50.0 % of what it does in one alone"));
    rows[0].cards = 2;
    CHECK(verdict_of(rows).ends_with("; each of 4 cards does 100 % of what it does in 2"));
    CHECK(verdict_of(rows, {.by = Criterion::latency, .fewest_cards = true}).starts_with("2 cards: "));
}

TEST_CASE("a criterion without a figure is a usage error") {
    const std::vector<Choice> rows{choice("a", 1e-3, 1)};
    CHECK(test::failure_of([&] { return order_of(choices_of(rows), {.by = Criterion::cost}); }).code ==
          ErrorCode::usage);
}

TEST_CASE("the front has what nothing cheaper is as fast as, without what does not keep up") {
    std::vector<Choice> rows;
    for (const auto& [cards, latency_s] : {std::pair{1, 4.0}, {2, 2.0}, {2, 3.0}, {4, 2.5}, {4, 1.0}, {8, 0.5}}) {
        rows.push_back(choice("a", latency_s, 1));
        rows.back().cards = cards;
        rows.back().items_per_s = 100;
    }
    rows.back().is_saturated = true;
    const std::vector<bool> expected{true, true, false, false, true, false};
    for (std::size_t i = 0; i < rows.size(); ++i) CHECK(is_on_front(rows[i], choices_of(rows)) == expected[i]);
}

TEST_CASE("a verdict on layouts names them and what the best saves against one server") {
    std::vector<Choice> rows;
    for (const auto& [layout, cards, items] :
         {std::tuple("tp 8", 8, 59.0), {"2 x tp 4", 8, 100.0}, {"tp 4", 4, 45.0}}) {
        rows.push_back(choice("a", 2, 1));
        rows.back().cards = cards;
        rows.back().layout = layout;
        rows.back().items_per_s = items;
    }
    CHECK(verdict_of(rows, {.by = Criterion::throughput}) ==
          "best: 8 cards = 2 replicas of tp 4: 100 items/s, latency 2.00 s, 41.0 % cheaper than tp 8; next: 8 cards = "
          "tp 8 "
          "at 0.590 times that");
}
