#!/bin/sh
# Fails when what is committed is not what the .proto files generate: changed, missing, or left over from a file that has gone.
# Usage: compare.sh GENERATED COMMITTED
set -eu

generated=$1
committed=$2
status=0

for file in "$generated"/*; do
	if ! diff -u "$committed/$(basename "$file")" "$file"; then
		status=1
	fi
done
for file in "$committed"/*.pb.go "$committed"/*.pb.gw.go "$committed"/*.swagger.json; do
	if [ ! -e "$generated/$(basename "$file")" ]; then
		echo "$file: no .proto file generates it"
		status=1
	fi
done
if [ "$status" -ne 0 ]; then
	echo "generated code is not current: run make generate and commit the result"
fi
exit "$status"
