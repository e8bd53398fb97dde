#pragma once

#include "ftax/nas.hpp"

namespace ftax::nas {

using SpaceGetter = const Space&();
SpaceGetter nasbench201_space, fbnet_space, ofa_mobilenet_v3_space, ofa_resnet_space, transformer_space;

/// Splits `text` at `separator` into integers. Throws Error{usage} with the space, position and expectation.
void parse_integers(std::string_view space, std::string_view text, char separator, std::vector<int>& values);

}  // namespace ftax::nas
