// The shim defines __nv_bfloat16.
