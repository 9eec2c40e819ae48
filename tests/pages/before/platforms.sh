# Files that were copied from a cluster.
cp tests/platforms/recorded/omnipath.scontrol nodes.txt
touch topology.txt
mkdir -p node-sys/class/net
