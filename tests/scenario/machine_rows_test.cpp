#include "src/scenario/machine_rows.hpp"

#include <doctest/doctest.h>

#include "tests/approx.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax;

namespace {

scenario::MachineRows rows_of(const std::string& header, const std::string& rows, const std::string& probe = {}) {
    const test::TemporaryFolder folder;
    std::vector<CsvTable> tables;
    tables.push_back(read_csv(folder.write("rows.csv", header + "\n" + rows)));
    if (!probe.empty()) tables.push_back(read_csv(folder.write("probe.csv", "quantity,value\n" + probe)));
    return scenario::machine_rows(std::move(tables), {}, [](const auto&) {});
}

const std::string operators = "gpu,op,precision,shape,mode,latency_ms,problem";
const std::string networks = "gpu,framework,precision,model,batch,seq,mode,source,latency_ms,problem";

}  // namespace

TEST_CASE("rows of operators are of weights that have left the cache: calls rotate through copies of them") {
    const auto rows = rows_of(operators, "NVIDIA H200,linear,bf16,m=8 n=1024 k=1024,device_hot,0.01,\n");
    REQUIRE(rows.device_rows.size() == 1);
    REQUIRE(rows.device_rows[0].kernels.size() == 1);
    const auto& product = std::get<kernels::GemmShape>(rows.device_rows[0].kernels[0].shape);
    CHECK(product.weight_reuse_bytes >= 2 * rows.device.l2_bytes);
}

TEST_CASE("what ftax's own graphs ran calls no modules, what a library ran does") {
    const auto calls = [](const std::string& source) {
        const auto rows = rows_of(networks, "t4,pytorch-eager,fp32,bert,1,128,host_dispatch," + source + ",5,\n");
        return rows.host_rows.at("pytorch-eager").at(0).operations[static_cast<std::size_t>(HostKind::module_call)];
    };
    CHECK(calls("ftax graph") == 0);
    CHECK(calls("transformers 5.0") > 100);
}

TEST_CASE("host times of networks count up to the batch that fills the launch queue, device times at every batch") {
    std::string rows;
    for (const char* batch : {"1", "8", "16", "128"}) {
        for (const char* mode : {"host_dispatch", "device_hot"})
            rows += std::string("t4,pytorch-eager,fp32,resnet18,") + batch + ",," + mode + ",ftax graph,5,\n";
    }
    const auto found = rows_of(networks, rows);
    CHECK(found.host_rows.at("pytorch-eager").size() == 2);
    CHECK(found.device_rows.size() == 4);
}

TEST_CASE("the host times of a network that reads numbers back are the device's and not fitted") {
    const auto hosts = [](const char* waits) {
        const std::string row = "t4,pytorch-eager,fp32,resnet18,1,host_dispatch," + std::string(waits) + ",5,\n";
        return rows_of("gpu,framework,precision,model,batch,mode,waits,latency_ms,problem",
                       row + "t4,pytorch-eager,fp32,alexnet,1,device_hot,,5,\n")
            .host_rows["pytorch-eager"]
            .size();
    };
    CHECK(hosts("0") == 1);
    CHECK(hosts("") == 1);
    CHECK(hosts("2") == 0);
}

TEST_CASE("a network in channels-last layout is a case of its own") {
    std::string rows;
    for (const char* layout : {"", "nhwc"})
        rows += std::string("t4,pytorch-eager,fp16,resnet18,8,") + layout + ",device_hot,5,\n";
    const auto found = rows_of("gpu,framework,precision,model,batch,layout,mode,latency_ms,problem", rows).device_rows;
    CHECK(found.size() == 2);  // not one with the median of both
}

TEST_CASE("device times hold a gap after each kernel, the measured one where there is one") {
    const std::string row = "t4,softmax,fp32,b=64 h=512,device_hot,0.01,\n";
    const double usual_s = rows_of(operators, row).device_rows.at(0).gaps_s;
    CHECK(usual_s > 1e-7);
    const double measured_s = rows_of(operators, row, "kernel_gap,3e-6\ngraph_gap,1e-6\n").device_rows.at(0).gaps_s;
    CHECK(measured_s == approx(3e-6));
    // A CUDA graph has its own.
    const auto gaps = [](const char* framework) {
        const auto rows =
            rows_of(networks, std::string("t4,") + framework + ",fp32,resnet18,1,,device_hot,ftax graph,5,\n",
                    "kernel_gap,3e-6\ngraph_gap,1e-6\n");
        return rows.device_rows.at(0).gaps_s;
    };
    CHECK(gaps("cuda-graph") < 0.4 * gaps("pytorch-eager"));
}

TEST_CASE("a row with a problem is not fitted") {
    const auto rows = rows_of(operators,
                              "t4,relu,fp32,b=1 h=8,device_hot,0.01,\n"
                              "t4,relu,fp32,b=1 h=16,device_hot,,\"stalled: no answer within 60 s\"\n");
    CHECK(rows.device_rows.size() == 1);
}

TEST_CASE("rows at a clock far below the others' are not fitted, but for those at the power limit") {
    const auto count = [](const std::string& slowdown, double clock) {
        std::string rows;
        for (int i = 0; i < 20; ++i)
            rows += "t4,relu,fp32,b=1 h=" + std::to_string(8 + i) + ",device_hot,0.01," +
                    std::to_string(i < 5 ? clock : clock / 0.7) + "," + (i < 5 ? slowdown : "") + "\n";
        return rows_of("gpu,op,precision,shape,mode,latency_ms,clock_mhz,slowdown", rows).device_rows.size();
    };
    CHECK(count("", 1000) == 15);
    CHECK(count("power cap", 1000) == 20);
}

TEST_CASE("host times that other load lengthened are not fitted, and a warning counts them; device times are") {
    std::string rows;
    for (const char* ms : {"2.6", "1.0", "1.2"}) {
        for (const char* mode : {"host_dispatch", "device_hot"})
            rows += std::string("t4,pytorch-eager,fp32,resnet18,1,,") + mode + ",ftax graph," + ms + ",\n";
    }
    const test::TemporaryFolder folder;
    std::vector<CsvTable> tables;
    tables.push_back(read_csv(folder.write("rows.csv", networks + "\n" + rows)));
    std::vector<std::string> warnings;
    const auto found = scenario::machine_rows(std::move(tables), {}, [&](const auto& more) { warnings = more; });
    CHECK(found.host_rows.at("pytorch-eager").at(0).measured_s == approx(1.1e-3));
    CHECK(found.device_rows.at(0).latency_s == approx(1.2e-3));
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].starts_with("1 host times of 6 exceed"));
}

TEST_CASE("a batch measured alone is the device's from 50 us a kernel on") {
    const test::TemporaryFolder folder;
    auto file = read_model_measurements(read_csv(folder.write(
        "rows.csv", "gpu,framework,precision,model,batch,latency_ms\nt4,pytorch-eager,fp32,resnet18,8,9000\n")));
    const auto rows = [&](double latency_s) {
        file.rows.at(0).latency_s = latency_s;
        return scenario::model_rows(file, {});
    };
    const auto kept = rows(9);
    REQUIRE(kept.size() == 1);
    double count = 0;
    for (const CountedKernel& kernel : kept[0].kernels) count += kernel.count;
    CHECK(count > 20);
    CHECK(rows(50e-6 * count).size() == 1);
    CHECK(rows(50e-6 * count * (1 + 1e-12)).size() == 1);
    CHECK(rows(50e-6 * count * (1 - 1e-12)).empty());
}
