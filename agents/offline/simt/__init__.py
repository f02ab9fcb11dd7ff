"""The same programs as kernels of one thread an element: CUDA, HIP, OpenCL."""
