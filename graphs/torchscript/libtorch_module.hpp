#pragma once

#include <string>

#include "graphs/torchscript/program.hpp"

/// Interface of the module linked with LibTorch to the program that loads it; see load_program.hpp.
extern "C" __attribute__((visibility("default"))) void ftax_load_torchscript(const std::string& path,
                                                                             ftax::script::Program& program);
