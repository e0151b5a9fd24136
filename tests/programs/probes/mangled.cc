// Mangled names of C++.

namespace space {
struct Class {
    __attribute__((noinline)) int method(int number) { return number + value; }
    __attribute__((noinline)) int twice(int number) { return number + value; }
    __attribute__((noinline)) int twice(char letter) { return letter + value; }
    int value;
};
} // namespace space

int main(int count, char **) {
    space::Class object{count};
    return object.method(1) + object.twice(2) + object.twice('c');
}
