#!/usr/bin/env bash
# The figures of BERT-MASS that need a GPU, on one: trains, then measures, three at a time, since one small network leaves most of it idle.
#
#     python benchmarks/long_pack.py pack DATA carry --parts stories articles reviews words --documents 3200
#     benchmarks/long_all.sh carry out [SECONDS [PART…]]
#
# Parts are stories, words, articles, reviews and speed; without any, all. out/runs has the networks, out/*.json what was measured, out/log what was
# printed, out/jobs when each began and ended. What takes longer than SECONDS (7200) is stopped. Run it again to go on: a training resumes, and
# what was measured is not measured again.
set -u
data=$1 out=$2 end=$((SECONDS + ${3:-7200}))
shift $(($# < 3 ? $# : 3))
parts=" ${*:-stories words articles reviews speed} "
declare -A needs=([stories]="babi novels" [words]="enwiki enwiki-held" [articles]=squad [reviews]=imdb [speed]=)
for part in $parts; do
    for folder in ${needs[$part]-}; do
        [ -e "$data/$folder" ] || { echo "$0: there is no $data/$folder, which $part needs: pack it first" >&2; exit 2; }
    done
done
mkdir -p "$out/log" "$out/runs"
rm -f "$out"/*.failed
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
nvidia-cuda-mps-control -d 2> /dev/null # processes then compute side by side; without it they take turns

job() { # NAME COMMAND…: within the time that is left
    local name=$1 left=$((end - SECONDS))
    shift
    if [ "$left" -lt 10 ]; then
        echo "$name: no time left" >> "$out/jobs"
        return 1
    fi
    echo "$(date +%T) $name begins" >> "$out/jobs"
    timeout "$left" "$@" > "$out/log/$name.out" 2> "$out/log/$name.err"
    local code=$?
    echo "$(date +%T) $name ends: $code" >> "$out/jobs"
    return $code
}

wait_for() { # NAME: until it is trained; fails if that did
    until [ -e "$out/$1.done" ] || [ -e "$out/$1.failed" ] || [ "$SECONDS" -gt "$end" ]; do sleep 1; done
    [ -e "$out/$1.done" ]
}

learn() { # NAME RECIPE OPTION…
    local name=$1
    shift
    [ -e "$out/$name.done" ] ||
        { job "$name" python -m mnemic train "$@" --start reader --device cuda --out "$out/runs/$name" && touch "$out/$name.done"; } ||
        { touch "$out/$name.failed"; return 1; }
}

measure() { # NAME COMMAND…: its JSON
    [ -e "$out/$1.json" ] || { job "$@" && cp "$out/log/$1.out" "$out/$1.json"; }
}

keeps() { # SEED
    learn "keeps-$1" keeps --set model.encode.stack.depth=3 --data "$data/babi" --set data.background="$data/novels" \
        --set train.workers=4 --set train.validate=0 --seed "$1"
}

words() { # NAME OPTION…
    learn "$1" keeps-words --set model.encode.stack.depth=3 --data "$data/enwiki" --set train.workers=4 "${@:2}"
}

reviews() { # NAME RECIPE OPTION…
    learn "$1" "$2" --data "$data/imdb" --set data.length=512 --set data.overlap=0 --set train.matmul=bf16 "${@:3}"
}

asked() { # PART
    [[ $parts == *" $1 "* ]]
}

story_figures() {
    wait_for keeps-1 && wait_for keeps-2 || return 1
    local seeds=("$out"/runs/keeps-{0,1,2}) context=(python benchmarks/long_context.py)
    local how=(--batch 500 --device cuda --matmul bf16 --once --processes 8)
    measure ten-million "${context[@]}" "${seeds[@]}" --tokens 10000000 "${how[@]}"
    measure lengths "${context[@]}" "${seeds[@]}" --tokens 0 4000 32000 128000 1000000 "${how[@]}"
    measure window "${context[@]}" "$out/runs/keeps-0" --tokens 0 4000 32000 --batch 100 --device cuda --matmul bf16 --processes 3 --way window
    measure retrieval "${context[@]}" "$out/runs/keeps-0" --tokens 0 4000 32000 --batch 50 --device cuda --matmul bf16 --processes 3 --way retrieval
    for seed in 0 1 2; do
        measure "faithful-$seed" python benchmarks/faithful.py "$out/runs/keeps-$seed" --questions 100 --device cuda
    done
}

word_figures() {
    wait_for words || return 1
    measure long-words python benchmarks/long_words.py "$out/runs/words" --beside "$out/runs/windows" \
        --folder "$data/enwiki-held" --device cuda
}

articles() {
    learn articles keeps-articles --data "$data/squad" --set train.workers=4 || return 1
    measure shipped-articles python benchmarks/long_articles.py mnemic/weights/bert-mass --folder "$data/squad" --reader mnemic/weights/reader --device cuda
    measure long-articles python benchmarks/long_articles.py "$out/runs/articles" --reader mnemic/weights/reader --device cuda
}

all_reviews() {
    reviews memory bert-mass-classes
    reviews averaged bert-classes
    reviews first bert-classes --set data.truncation=first
    measure long-reviews python benchmarks/long_reviews.py memory="$out/runs/memory" windows="$out/runs/averaged" \
        first="$out/runs/first" --device cuda
}

lane_1() {
    asked stories && keeps 0 && story_figures
    asked articles && articles
}

lane_2() {
    asked stories && keeps 1
    asked words && words words
}

lane_3() {
    asked stories && keeps 2
    asked words && words windows --set model.carry.lasts=false && word_figures
    asked reviews && all_reviews
}

lane_1 &
lane_2 &
lane_3 &
wait
echo quit | nvidia-cuda-mps-control 2> /dev/null
asked speed && measure speed python benchmarks/long_speed.py --tokens 1024 32768 1048576 --at-once 8 --seconds 60 --again 5 --device cuda
echo "$(date +%T) all done" >> "$out/jobs"
