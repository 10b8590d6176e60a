# Completion of hone, honed and hone-worker for bash, installed under share/bash-completion/completions.
_hone() {
  local IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]} words
  case ${1##*/} in
    hone) words=$("$1" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) ;;
    *) words=$("$1" --help 2>/dev/null | grep -o -E -- '(^| |,)--[a-z][a-z-]*' | tr -d ' ,' | sort -u) ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
# Where nothing is offered, a file is meant.
complete -o default -F _hone hone honed hone-worker
