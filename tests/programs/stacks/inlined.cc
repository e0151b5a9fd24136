// Makes lseek(-1, TAG, 9) from functions, some of them inlined, and prints all of them, innermost first, as --inline
// should name them.
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace shapes {

volatile long returned;

template <typename T>
struct Counter {
	T tag;

	[[gnu::always_inline]] inline void seek() const { returned = returned + lseek(-1, tag, 9); }

	[[gnu::noinline]] void apart(int times) const
	{
		for (int i = 0; i < times; i++)
			seek();
		returned = returned + 1;
	}
};

[[gnu::always_inline]] inline void between(const Counter<long> &counter)
{
	counter.apart(1);
	returned = returned + 1;
}

[[gnu::noinline]] void outer(long tag)
{
	between(Counter<long> { tag });
	returned = returned + 1;
}

} // namespace shapes

int main(int argc, char **argv)
{
	std::puts("shapes::Counter<long>::seek() const\nshapes::Counter<long>::apart(int) const\nshapes::between(shapes::Counter<long> const&)\nshapes::outer(long)\nmain");
	shapes::outer(argc > 1 ? std::atol(argv[1]) : 0);
}
