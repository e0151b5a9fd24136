// A library with two versions of one function; versions.map names them.

__attribute__((symver("changed@OLD_1"))) int changed_once(int number) { return number; }

__attribute__((symver("changed@@NEW_2"))) int changed_twice(int number) { return number + 1; }
