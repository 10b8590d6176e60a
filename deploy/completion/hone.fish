# Completion of hone, honed and hone-worker for fish, installed under share/fish/vendor_completions.d.
function __hone_offered
    set -l words (commandline --tokenize --cut-at-cursor --current-process) (commandline --current-token --cut-at-cursor)
    set -l program $words[1]
    set -l offered
    switch (basename $program)
        case hone
            set offered ($program __complete $words[2..] 2>/dev/null)
        case '*'
            set offered ($program --help 2>/dev/null | string match --regex --all --groups-only '(?:^| |,)(--[a-z][a-z-]*)' | sort -u)
    end
    if set -q offered[1]
        printf '%s\n' $offered
    else # a file is meant
        __fish_complete_path $words[-1]
    end
end
for program in hone honed hone-worker
    complete --command $program --no-files --arguments '(__hone_offered)'
end
