#include "predictors/nas/small_matrix.hpp"

#include <doctest/doctest.h>

using namespace ftax;

TEST_CASE("the inverse of a positive definite matrix undoes it") {
    const Matrix<3> a{{{4, 1, 0.5}, {1, 3, -1}, {0.5, -1, 2}}};
    const Vector<3> x{1, -2, 3};
    const Vector<3> back = product(inverse(a), product(a, x));
    for (std::size_t i = 0; i < 3; ++i) CHECK(back[i] == doctest::Approx(x[i]));
}
