#pragma once

#include <array>
#include <cstddef>

/// Matrices of a handful of rows, for estimates that predictors make themselves (Eigen belongs to calibration/fit).
namespace ftax {

template <std::size_t n>
using Vector = std::array<double, n>;
template <std::size_t n>
using Matrix = std::array<Vector<n>, n>;

template <std::size_t n>
Vector<n> product(const Matrix<n>& a, const Vector<n>& x) {
    Vector<n> result{};
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) result[i] += a[i][j] * x[j];
    }
    return result;
}

/// Inverts a positive definite matrix by Gauss-Jordan elimination, which needs no pivoting there.
template <std::size_t n>
Matrix<n> inverse(Matrix<n> a) {
    Matrix<n> result{};
    for (std::size_t i = 0; i < n; ++i) result[i][i] = 1;
    for (std::size_t pivot = 0; pivot < n; ++pivot) {
        const double scale = 1 / a[pivot][pivot];
        for (std::size_t j = 0; j < n; ++j) {
            a[pivot][j] *= scale;
            result[pivot][j] *= scale;
        }
        for (std::size_t i = 0; i < n; ++i) {
            if (i == pivot) continue;
            const double factor = a[i][pivot];
            for (std::size_t j = 0; j < n; ++j) {
                a[i][j] -= factor * a[pivot][j];
                result[i][j] -= factor * result[pivot][j];
            }
        }
    }
    return result;
}

}  // namespace ftax
