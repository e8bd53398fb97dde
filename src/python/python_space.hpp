#pragma once

#include <memory>

#include "ftax/nas.hpp"
#include "src/python/bindings.hpp"

namespace ftax::python {

/// A search space by name, or a Python object with the methods of ftax.nas.Space. Calls into Python acquire the
/// interpreter lock and are allowed from any thread; Python exceptions propagate through C++ unchanged.
class SpaceHandle {
  public:
    /// Throws Error{usage} for an unknown name.
    explicit SpaceHandle(nb::object space);

    [[nodiscard]] const nas::Space& get() const { return own_ ? *own_ : *built_in_; }

  private:
    std::shared_ptr<const nas::Space> own_;
    const nas::Space* built_in_ = nullptr;
};

}  // namespace ftax::python
