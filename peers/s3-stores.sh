#!/usr/bin/env bash
# Starts other stores with an S3 endpoint on this machine, for `areo-peers --targets areo-s3,minio=...`, and stops them when it ends.
#   s3-stores.sh DIR STORE...      STORE: minio, garage, seaweedfs
# Each has five servers where it can, [5,3] where it codes, three replicas where it replicates, and syncs before it acknowledges where it can be told
# to. Programs are looked for on the PATH. Access key and secret are those of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. It prints the words for
# --targets, one in each line, and stays until its input ends or it is interrupted. S3_STORES_HOST is an address of this machine [127.0.0.1]: in a
# container MinIO takes no loopback address.
set -euo pipefail
umask 077
folder=${1:?usage: s3-stores.sh DIR STORE...}
shift
: "${AWS_ACCESS_KEY_ID:?set it to an access key for the stores}" "${AWS_SECRET_ACCESS_KEY:?set it to the secret of the key}"
host=${S3_STORES_HOST:-127.0.0.1}
mkdir -p "$folder"
folder=$(realpath "$folder")
started=()
stop() {
    kill "${started[@]}" 2>/dev/null || true
    wait
}
trap stop EXIT

# start LOG COMMAND...
start() {
    local log=$folder/$1.log
    shift
    "$@" >"$log" 2>&1 </dev/null &
    started+=($!)
}

# bucket PORT REGION: makes the bucket `bench`, as soon as the store takes it.
bucket() {
    local tries
    for tries in $(seq 60); do
        if curl --silent --fail --output /dev/null --aws-sigv4 "aws:amz:$2:s3" --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \
            --request PUT "http://$host:$1/bench"; then
            return
        fi
        sleep 1
    done
    echo "s3-stores.sh: the store at port $1 takes no bucket after $tries tries: see $folder" >&2
    return 1
}

minio_store() {
    local at places=()
    for at in 0 1 2 3 4; do
        mkdir -p "$folder/minio$at"
        places+=("http://$host:900$at$folder/minio$at")
    done
    for at in 0 1 2 3 4; do
        # The last variable lets it use directories of the disk that the system is on.
        start "minio$at" env MINIO_ROOT_USER="$AWS_ACCESS_KEY_ID" MINIO_ROOT_PASSWORD="$AWS_SECRET_ACCESS_KEY" \
            MINIO_STORAGE_CLASS_STANDARD=EC:2 MINIO_BROWSER=off MINIO_UPDATE=off MINIO_CI_CD=on \
            minio server --quiet --address "$host:900$at" "${places[@]}"
    done
    bucket 9000 us-east-1
    echo "minio=http://$host:9000/bench"
}

garage_store() {
    local at id ids=() secret
    secret=$(printf '%064d' 7)
    for at in 0 1 2; do
        mkdir -p "$folder/garage$at"
        cat >"$folder/garage$at/garage.toml" <<END
metadata_dir = "$folder/garage$at/meta"
data_dir = "$folder/garage$at/data"
db_engine = "lmdb"
metadata_fsync = true
data_fsync = true
replication_factor = 3
rpc_bind_addr = "$host:391$at"
rpc_public_addr = "$host:391$at"
rpc_secret = "$secret"
[s3_api]
s3_region = "us-east-1"
api_bind_addr = "$host:390$at"
END
        start "garage$at" garage -c "$folder/garage$at/garage.toml" server
    done
    local ask=(garage -c "$folder/garage0/garage.toml")
    for at in 0 1 2; do
        until id=$(garage -c "$folder/garage$at/garage.toml" node id -q 2>/dev/null); do sleep 0.2; done
        ids+=("$id")
    done
    for id in "${ids[@]:1}"; do
        until "${ask[@]}" node connect "$id" >>"$folder/garage.log" 2>&1; do sleep 0.5; done
    done
    for id in "${ids[@]}"; do
        "${ask[@]}" layout assign -z one -c 100G "${id%%@*}" >>"$folder/garage.log" 2>&1
    done
    {
        "${ask[@]}" layout apply --version 1
        "${ask[@]}" key import --yes -n bench "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY"
        "${ask[@]}" bucket create bench
        "${ask[@]}" bucket allow --read --write --owner bench --key "$AWS_ACCESS_KEY_ID"
    } >>"$folder/garage.log" 2>&1
    echo "garage=http://$host:3900/bench"
}

seaweedfs_store() {
    mkdir -p "$folder/seaweedfs"
    cat >"$folder/seaweedfs.json" <<END
{"identities": [{"name": "bench", "credentials": [{"accessKey": "$AWS_ACCESS_KEY_ID", "secretKey": "$AWS_SECRET_ACCESS_KEY"}],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
END
    # One process with everything: without replicas, and without waiting for the disk, which it cannot be told to.
    start seaweedfs weed server -ip="$host" -dir="$folder/seaweedfs" -master.port=9633 -volume.port=9680 -filer -filer.port=9688 \
        -s3 -s3.port=9683 -s3.config="$folder/seaweedfs.json"
    bucket 9683 us-east-1
    echo "seaweedfs=http://$host:9683/bench"
}

for store in "$@"; do
    case $store in
    minio | garage | seaweedfs) "${store}_store" ;;
    *)
        echo "s3-stores.sh: '$store' is no store that this starts: minio, garage, seaweedfs" >&2
        exit 2
        ;;
    esac
done
cat >/dev/null
