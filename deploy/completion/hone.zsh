#compdef hone honed hone-worker
# Completion of hone, honed and hone-worker for zsh, installed as share/zsh/site-functions/_hone.
local -a offered
case ${words[1]:t} in
  hone) offered=(${(f)"$("${words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)"}) ;;
  *) offered=(${(u)$("${words[1]}" --help 2>/dev/null | grep -o -E -- '(^| |,)--[a-z][a-z-]*' | tr -d ' ,')}) ;;
esac
# Where nothing is offered, a file is meant.
compadd -a -- offered || _files
