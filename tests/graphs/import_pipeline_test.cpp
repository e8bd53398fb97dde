#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "ftax/import.hpp"
#include "ftax/work.hpp"
#include "tests/approx.hpp"
#include "tests/cli/command.hpp"
#include "tests/failure.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

namespace fs = std::filesystem;

std::string shipped(const std::string& name) {
    return FTAX_SOURCE_DIR "/tests/graphs/diffusers/" + name;
}

Graph load(const std::string& folder, std::int64_t steps) {
    return load_graph(folder, {.trip_counts = {{"steps", steps}}});
}

/// Parameters of each part, each once.
std::map<std::string, std::int64_t> parameters_by_part(const Graph& graph) {
    std::map<std::string, std::int64_t> sums;
    std::set<TensorId> counted;
    const BoundShapes bound = bind(graph, {{"batch", 1}});
    for (const Op& op : graph.ops) {
        for (const TensorId id : op.inputs) {
            if (id == no_tensor || graph.tensors[id].role != TensorRole::weight || !counted.insert(id).second) continue;
            sums[op.module.substr(0, op.module.find('.'))] += element_count(graph.tensors[id], bound);
        }
    }
    return sums;
}

std::size_t operators_of(const Graph& graph, const std::string& part) {
    return static_cast<std::size_t>(
        std::ranges::count_if(graph.ops, [&](const Op& op) { return op.module.starts_with(part); }));
}

/// A copy of the folder of Stable Diffusion 1.5 with one field of a file replaced.
struct ChangedFolder : TemporaryFolder {
    explicit ChangedFolder(const std::string& name) {
        fs::copy(shipped("stable-diffusion-v1-5"), path, fs::copy_options::recursive);
        file_ = path / name;
    }
    Failure with(const std::string& field, const nlohmann::json& value) const {
        const std::string before = read_text(file_.string());
        nlohmann::json document = nlohmann::json::parse(before);
        document[field] = value;
        std::ofstream(file_) << document;
        const Failure failure = failure_of([&] { return load(path.string(), 1); });
        std::ofstream(file_) << before;
        return failure;
    }

  private:
    fs::path file_;
};

}  // namespace

TEST_CASE("folders of diffusers have the parameters that their model cards give") {
    // Decoders with post_quant_conv; encoders of images are not run.
    constexpr std::int64_t decoder = 49'490'199, clip = 123'060'480;
    const auto sd15 = parameters_by_part(load(shipped("stable-diffusion-v1-5"), 1));
    CHECK(sd15.at("unet") == 859'520'964);
    CHECK(sd15.at("text_encoder") == clip);
    CHECK(sd15.at("vae") == decoder);
    const auto sd21 = parameters_by_part(load(shipped("stable-diffusion-2-1"), 1));
    CHECK(sd21.at("unet") == 865'910'724);
    CHECK(sd21.at("text_encoder") == 340'387'840);
    const auto xl = parameters_by_part(load(shipped("stable-diffusion-xl-base-1.0"), 1));
    CHECK(xl.at("unet") == 2'567'463'684);
    CHECK(xl.at("text_encoder") == clip);
    CHECK(xl.at("text_encoder_2") == 694'659'840);
    CHECK(xl.at("vae") == decoder);
    // diffusers 0.35 and transformers 4.57 on the meta device.
    constexpr std::int64_t wide_decoder = 49'545'475, t5 = 4'762'310'656;
    const auto flux = parameters_by_part(load(shipped("flux-1-dev"), 1));
    const std::int64_t constants = 4608 * 3 + 1;  // positions and guidance, which the pipeline passes
    CHECK(flux.at("transformer") == 11'901'408'320 + constants);
    CHECK(flux.at("text_encoder") == clip);
    CHECK(flux.at("text_encoder_2") == t5);
    CHECK(flux.at("vae") == wide_decoder);
    const auto sd3 = parameters_by_part(load(shipped("stable-diffusion-3-medium"), 1));
    CHECK(sd3.at("transformer") == 2'028'328'000 + 192 * 192 * 1536);  // with the table of positions
    CHECK(sd3.at("text_encoder") == clip + 768 * 768);
    CHECK(sd3.at("text_encoder_3") == t5);
    CHECK(parameters_by_part(load(shipped("stable-diffusion-3.5-medium"), 1)).at("transformer") ==
          2'243'171'520 + 384 * 384 * 1536);
}

TEST_CASE("transformers denoise as often as the pipeline asks, Flux without a negative prompt") {
    const Graph flux = load_graph(shipped("flux-1-dev")), two = load(shipped("flux-1-dev"), 2);
    CHECK(std::ranges::count(flux.module_calls, "transformer", &ModuleCall::path) == 28);
    CHECK(std::ranges::count(two.module_calls, "transformer", &ModuleCall::path) == 2);
    CHECK(std::ranges::count(two.module_calls, "text_encoder_2", &ModuleCall::path) == 1);
    CHECK(std::ranges::count(two.module_calls, "transformer.single_transformer_blocks.37", &ModuleCall::path) == 2);
    const Graph sd3 = load(shipped("stable-diffusion-3-medium"), 2);
    CHECK(std::ranges::count(sd3.module_calls, "transformer", &ModuleCall::path) == 2);
    CHECK(std::ranges::count(sd3.module_calls, "text_encoder_3", &ModuleCall::path) == 2);
    // 29.4 TMAC a pass of Flux: 2 FLOP × (11.9 G parameters, those of modulation once) × 4,608 tokens, and attention.
    const auto flops = [](const Graph& graph) {
        return static_cast<double>(total_work(graph, bind(graph, {{"batch", 1}})).flops);
    };
    const double pass = flops(two) - flops(load(shipped("flux-1-dev"), 1));
    const double width = 3072, tokens = 4608, layer = 12 * width * width;
    const double products = 2 * tokens * (19 + 38) * layer, attention = 57 * 4 * tokens * tokens * width;
    CHECK(pass == approx(products + attention).epsilon(0.02));
}

TEST_CASE("a pipeline runs its UNet once a step for both prompts and its decoder once") {
    const Graph two = load(shipped("stable-diffusion-2-1"), 2), three = load(shipped("stable-diffusion-2-1"), 3);
    CHECK(3 * operators_of(two, "unet") == 2 * operators_of(three, "unet"));
    CHECK(operators_of(two, "vae") == operators_of(three, "vae"));
    CHECK(operators_of(two, "text_encoder") == operators_of(three, "text_encoder"));
    // PNDM takes one more step than is asked for, Heun two passes for each but the last.
    const ChangedFolder folder("model_index.json");
    const auto passes = [&](const std::string& scheduler, std::int64_t steps) {
        nlohmann::json index = nlohmann::json::parse(read_text(folder.file("model_index.json")));
        index["scheduler"][1] = scheduler;
        std::ofstream(folder.path / "model_index.json") << index;
        const Graph graph = load(folder.path.string(), steps);
        return std::ranges::count(graph.module_calls, "unet", &ModuleCall::path);
    };
    CHECK(passes("DDIMScheduler", 4) == 4);
    CHECK(passes("PNDMScheduler", 4) == 5);
    CHECK(passes("HeunDiscreteScheduler", 4) == 7);
    CHECK(std::ranges::count(load_graph(folder.path.string()).module_calls, "unet", &ModuleCall::path) == 99);
    // 401.6 GMAC a pass at 512 x 512 (thop, diffusers' UNet of Stable Diffusion 1.5), here two images of 2 FLOP a MAC.
    const auto flops = [](const Graph& graph) {
        return static_cast<double>(total_work(graph, bind(graph, {{"batch", 1}})).flops);
    };
    const double pass =
        flops(load(shipped("stable-diffusion-v1-5"), 2)) - flops(load(shipped("stable-diffusion-v1-5"), 1));
    CHECK(pass == approx(4 * 401.6e9).epsilon(0.05));
}

TEST_CASE("the decoder of Stable Diffusion XL stays in f32") {
    const Graph graph = load(shipped("stable-diffusion-xl-base-1.0"), 1);
    for (const Op& op : graph.ops) {
        if (!op.is(OpKind::conv)) continue;
        CHECK(graph.tensors[op.inputs[1]].dtype == (op.module.starts_with("vae") ? DType::f32 : DType::f16));
    }
}

TEST_CASE("what is not a readable pipeline is refused with file and field") {
    const ChangedFolder index("model_index.json"), unet("unet/config.json"), vae("vae/config.json"),
        text("text_encoder/config.json");
    const Failure pipeline = index.with("_class_name", "KandinskyPipeline");
    CHECK(pipeline.code == ErrorCode::model);
    CHECK(pipeline.says("model_index.json"));
    CHECK(pipeline.says("_class_name"));
    CHECK(pipeline.says("KandinskyPipeline"));
    CHECK(index.with("unet", {"diffusers", "SD3Transformer2DModel"}).says("SD3Transformer2DModel"));
    CHECK(index.with("scheduler", {"diffusers", "NewScheduler"}).says("NewScheduler"));
    CHECK(index.with("scheduler", nullptr).says("scheduler"));
    CHECK(index.with("scheduler", nlohmann::json::array()).says("scheduler"));
    CHECK(index.with("scheduler", {"diffusers", "conv"}).says("scheduler"));
    CHECK(index.with("_class_name", "FluxPipeline").says("scheduler"));
    CHECK(unet.with("class_embed_type", "timestep").says("class_embed_type"));
    CHECK(unet.with("down_block_types", {"DownBlock2D"}).says("down_block_types"));
    CHECK(unet.with("up_block_types", {"UpBlock2D", "X", "UpBlock2D", "UpBlock2D"}).says("up_block_types"));
    CHECK(unet.with("attention_head_dim", 7).says("attention_head_dim"));
    CHECK(unet.with("attention_head_dim", {8, 8}).says("attention_head_dim"));
    CHECK(unet.with("block_out_channels", nlohmann::json::array()).says("block_out_channels"));
    CHECK(unet.with("sample_size", "large").says("sample_size"));
    CHECK(unet.with("layers_per_block", 1'000'000).code == ErrorCode::limit);
    CHECK(vae.with("block_out_channels", {64, 128}).says("block_out_channels"));
    CHECK(text.with("model_type", "t5").says("model_type"));
    CHECK_FALSE(unet.with("attention_head_dim", {8, 8, 8, 8}));
    for (const char* name : {"model_index.json", "text_encoder/config.json", "unet/config.json", "vae/config.json"}) {
        const ChangedFolder folder("model_index.json");
        for (const char* content : {"[]", "3", "{", "", "{}"}) {
            std::ofstream(folder.path / name) << content;
            const Failure failure = failure_of([&] { return load(folder.path.string(), 1); });
            CHECK_MESSAGE(failure.says(name), name << " " << content << ": " << failure.message);
        }
    }
    fs::remove(unet.path / "vae/config.json");
    const Failure missing = failure_of([&] { return load(unet.path.string(), 1); });
    CHECK(missing.says("vae/config.json"));
}

TEST_CASE("ftax predict gives the time of each part of a pipeline") {
    const std::vector<std::string> words{
        "predict", shipped("stable-diffusion-v1-5"), "--device", "rtx-4070", "--precision", "fp16", "--steps", "20"};
    auto with_json = words;
    with_json.insert(with_json.end(), {"--json", "-q"});
    const auto run = run_ftax(with_json);
    REQUIRE(run.exit_code == 0);
    const auto row = nlohmann::json::parse(run.output)["predictions"][0];
    double slower = 0;
    for (const auto& part : row["parts"])
        slower += std::max(part["host_s"].get<double>(), part["device_s"].get<double>());
    REQUIRE(row["parts"].size() == 4);
    CHECK(row["parts"][3]["name"] == "vae");
    CHECK(row["latency_s"].get<double>() == approx(slower).epsilon(0.1));
    with_json.insert(with_json.end(), {"--framework", "torch-compile"});
    const auto compiled = nlohmann::json::parse(run_ftax(with_json).output);
    for (const auto& part : compiled["predictions"][0]["parts"]) CHECK_FALSE(part["name"].get<std::string>().empty());
    const auto table = run_ftax(words);
    CHECK(table.output.find("text_encoder") != std::string::npos);
    const auto others = run_ftax({"predict", "resnet50", "--device", "t4", "--steps", "20"});
    CHECK(others.exit_code == 2);
    CHECK(others.errors.find("no loop 'steps'") != std::string::npos);
}
