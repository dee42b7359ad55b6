import { COMPLETE, type Shell } from './command.ts';

const BASH = `# Completion of machinist for bash.
_machinist() {
  local line=\${COMP_LINE:0:$COMP_POINT} words=() current value directive=4
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current=\${words[\${#words[@]}-1]}
  # Bash takes "=" for the beginning of a word.
  local before=
  [[ $current == *=* && $COMP_WORDBREAKS == *=* ]] && before=\${current%%=*}=
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    case $value in
      :*) directive=\${value#:} ;;
      *) COMPREPLY+=("\${value#"$before"}") ;;
    esac
  done < <("\${words[0]}" ${COMPLETE} "\${words[@]:1}" 2>/dev/null)
  [[ $directive == 0 ]] && compopt -o default 2>/dev/null
  return 0
}
complete -F _machinist machinist kubectl-machinist
`;

const ZSH = `#compdef machinist kubectl-machinist
# Completion of machinist for zsh.
_machinist() {
  local -a candidates
  local line directive=4
  while IFS= read -r line; do
    case $line in
      :*) directive=\${line#:} ;;
      *$'\\t'*) candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
      *) candidates+=("\${line//:/\\\\:}") ;;
    esac
  done < <("\${words[1]}" ${COMPLETE} "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#candidates} )); then
    _describe -V machinist candidates
  elif [[ $directive == 0 ]]; then
    _files
  fi
}
if [[ \${funcstack[1]} == _machinist ]]; then
  _machinist "$@"
else
  compdef _machinist machinist kubectl-machinist
fi
`;

const FISH = `# Completion of machinist for fish.
function __machinist_complete
  set -l typed (commandline -opc)
  set -l current (commandline -ct)
  set -l answer (command $typed[1] ${COMPLETE} $typed[2..] "$current" 2>/dev/null)
  for line in $answer
    switch $line
      case ':0'
        __fish_complete_path "$current"
      case ':*'
      case '*'
        echo $line
    end
  end
end
complete -c machinist -f -a '(__machinist_complete)'
complete -c kubectl-machinist -f -a '(__machinist_complete)'
`;

/** What each shell reads. */
export const SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
