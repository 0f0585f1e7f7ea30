// Smooths readings with a median filter.
#include <algorithm>
#include <vector>

constexpr int kWindow = 9;  // readings per window
constexpr int kMaxJumpCm = 18;  // larger jumps between two readings are dropped

int median(std::vector<int> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
}
