#pragma once

#include "predictors/framework_model.hpp"

namespace ftax {

extern const FrameworkModel pytorch_eager;

}  // namespace ftax
