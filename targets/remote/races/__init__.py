"""Whether the threads of a C++ kernel race: a look at every access, in an order without chance."""
