#!/usr/bin/env bash
# minio.sh DIR: a MinIO of five servers with one drive each, at [5,3], for `areo-peers --targets areo-s3,minio=...`. `minio` is on the PATH.
#
# Access key and secret are those of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. It makes the bucket `bench`, prints the word for --targets, and runs until
# its input ends or it is interrupted. MINIO_HOST is an address of this machine [127.0.0.1]: in a container MinIO takes no loopback address.
set -euo pipefail
umask 077
folder=${1:?usage: minio.sh DIR}
: "${AWS_ACCESS_KEY_ID:?set it to an access key}" "${AWS_SECRET_ACCESS_KEY:?set it to the secret of the key}"
host=${MINIO_HOST:-127.0.0.1}
mkdir -p "$folder"
folder=$(realpath "$folder")
started=()
stop() {
    kill "${started[@]}" 2>/dev/null || true
    wait
}
trap stop EXIT

places=()
for at in 0 1 2 3 4; do
    mkdir -p "$folder/$at"
    places+=("http://$host:900$at$folder/$at")
done
# The last variable lets it use directories of the disk that the system is on.
export MINIO_ROOT_USER=$AWS_ACCESS_KEY_ID MINIO_ROOT_PASSWORD=$AWS_SECRET_ACCESS_KEY MINIO_STORAGE_CLASS_STANDARD=EC:2 \
    MINIO_BROWSER=off MINIO_UPDATE=off MINIO_CI_CD=on
for at in 0 1 2 3 4; do
    minio server --quiet --address "$host:900$at" "${places[@]}" >"$folder/$at.log" 2>&1 </dev/null &
    started+=($!)
done
# curl reads the secret from its input: arguments are seen by every user of the machine.
for try in $(seq 60); do
    if printf 'user = "%s:%s"\n' "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" |
        curl --silent --fail --output /dev/null --config - --aws-sigv4 aws:amz:us-east-1:s3 --request PUT "http://$host:9000/bench"; then
        echo "minio=http://$host:9000/bench"
        cat >/dev/null
        exit
    fi
    sleep 1
done
echo "minio.sh: it takes no bucket after $try tries: see $folder" >&2
exit 1
