#pragma once

#include <doctest/doctest.h>

/// A value to compare with by its relative error, 1.2e-5 unless .epsilon() says otherwise. doctest's own scale of 1
/// lets any two times of microseconds count as equal. Zero equals only itself and is compared with ==.
inline doctest::Approx approx(double value) {
    return doctest::Approx(value).scale(0);
}
