# A test bed.
./collwise testbed up --nodes 8
