// The shim defines __half.
