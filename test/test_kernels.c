/* The tests of test_kernels.cu, whose object the library and its static parts are in. */
int test_kernels(void);

int main(void) { return test_kernels(); }
