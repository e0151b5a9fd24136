// walk COUNT: makes the calls lseek(-1, 1, 9) to lseek(-1, COUNT, 9) from functions of C++: virtual functions,
// templates, lambdas, destructors during an exception, handlers. The paths are pseudorandom.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace paths {

volatile long returned;
long tag;
int left;
unsigned long seed;

unsigned long next(unsigned long below)
{
	seed = seed * 6364136223846793005UL + 1442695040888963407UL;
	return (seed >> 33) % below;
}

void walk();

struct Way {
	virtual ~Way() = default;
	virtual void go(int number) const = 0;
};

template <typename T>
struct Typed : Way {
	T value {};

	[[gnu::noinline]] void go(int number) const override
	{
		walk();
		returned = returned + number + static_cast<long>(value);
	}
};

// This class has two bases, so calls through the second one pass a thunk.
struct Other {
	virtual ~Other() = default;
	virtual long other(const std::string &name) = 0;
};

struct Both : Way, Other {
	[[gnu::noinline]] void go(int number) const override
	{
		walk();
		returned = returned + number;
	}

	[[gnu::noinline]] long other(const std::string &name) override
	{
		walk();
		return returned + static_cast<long>(name.size());
	}
};

struct Leaving {
	[[gnu::noinline]] ~Leaving()
	{
		walk();
		returned = returned + 1;
	}
};

[[gnu::noinline]] void throwing(int number)
{
	Leaving leaving;
	if (number >= 0)
		throw std::runtime_error("on the way");
	returned = returned + 1;
}

[[gnu::noinline]] void through_an_exception()
{
	try {
		throwing(1);
	} catch (const std::exception &) {
		returned = returned + 1;
	}
}

[[gnu::noinline]] void in_a_handler()
{
	try {
		std::vector<int>().at(3);
	} catch (const std::out_of_range &) {
		walk();
		returned = returned + 1;
	}
}

[[gnu::noinline]] void sorting()
{
	std::vector<int> numbers { 3, 1, 2 };
	bool first = true;
	std::sort(numbers.begin(), numbers.end(), [&](int a, int b) {
		if (std::exchange(first, false))
			walk();
		return a < b;
	});
	returned = returned + numbers[0];
}

[[gnu::noinline]] void by_a_function(const std::function<void(int)> &function)
{
	function(7);
	returned = returned + 1;
}

[[gnu::noinline]] void in_a_map()
{
	struct Key {
		int key;
		bool operator<(const Key &other) const
		{
			if (other.key == 2 && key == 1)
				walk();
			return key < other.key;
		}
	};
	std::map<Key, int> map;
	map[{ 2 }] = 1;
	map.insert({ { 1 }, 2 });
	returned = returned + map.size();
}

[[gnu::noinline]] void in_a_future()
{
	std::async(std::launch::deferred, [] { walk(); }).get();
	returned = returned + 1;
}

void walk()
{
	static const std::unique_ptr<Way> ways[] = { std::make_unique<Typed<int>>(), std::make_unique<Typed<double>>(), std::make_unique<Both>() };
	static Both both;
	if (left-- <= 0) {
		returned = returned + lseek(-1, ++tag, 9);
		return;
	}
	switch (auto choice = next(10); choice) {
	case 0 ... 2:
		ways[choice]->go(static_cast<int>(choice));
		break;
	case 3: {
		Other *other = &both;
		__asm__("" : "+r"(other));
		returned = returned + other->other("name");
		break;
	}
	case 4:
		through_an_exception();
		break;
	case 5:
		in_a_handler();
		break;
	case 6:
		sorting();
		break;
	case 7:
		by_a_function([](int number) {
			walk();
			returned = returned + number;
		});
		break;
	case 8:
		in_a_map();
		break;
	default:
		in_a_future();
	}
	returned = returned + 1;
}

} // namespace paths

int main(int argc, char **argv)
{
	long count = argc > 1 ? std::atol(argv[1]) : 0;
	while (paths::tag < count) {
		paths::left = static_cast<int>(paths::next(8));
		paths::walk();
	}
	return paths::returned == 42;
}
