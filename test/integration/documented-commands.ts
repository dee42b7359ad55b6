/** Programs whose commands can be run here; what they are given follows. */
const PROGRAM = /^(?:kubectl|machinist|helm|curl|promtool|sh) \S/;

/**
 * What a page tells people to type, in its order and each once: the lines of its blocks of shell, and code between backticks that begins
 * with a program. A line that goes on behind a backslash, and a loop, are one command.
 */
export function commandsIn(page: string): readonly string[] {
  const found = page.matchAll(/^( *)```(\w*)\n([^]*?)^\1```$|`([^`\n]+)`/gm);
  const commands = [...found].flatMap(([, , language = '', block, inline = '']) => {
    if (block === undefined) return PROGRAM.test(inline) ? [inline] : [];
    return language === 'sh' ? linesOf(block) : [];
  });
  return [...new Set(commands)];
}

function linesOf(block: string): string[] {
  const loops = /^ *for [^]*?^ *done$|^.*$/gm;
  return [...block.replaceAll(/\\\n */g, '').matchAll(loops)]
    .map(([lines]) => lines.replace(/\s+#\s.*$/, '').trim())
    .filter((line) => line !== '');
}

/** What is not run: by the words that the command has, with the reason. */
export const NOT_RUN: readonly (readonly [words: RegExp, why: string])[] = [
  [/^npm /, 'of this repository; CI runs these'],
  [
    /^(?:kubectl (?:apply|describe|rollout|auth can-i|delete -k|machinist)|machinist (?:describe(?: machine)?|rollout(?: \w+)?))$/,
    'a word for something',
  ],
  [/^machinist delete machine .*--abort/, 'only while a deletion is prepared; prepared-deletion.test.ts aborts one'],
  [/^machinist driver verify/, 'test/integration/driver-contract.test.ts runs it'],
  [
    /^machinist driver from-mcm-provider|^git clone .*gardener|^aws-driver\/aws-driver|^docker build .*aws-driver/,
    'needs modules that not every proxy has; test/integration/mcm-provider.test.ts takes checkouts',
  ],
  [/^machinist completion fish/, 'of another shell; cmd/machinist/completion tests the answers'],
  [/^kubectl krew /, 'needs krew; hack/release checks the manifest'],
  [/^machinist try(?: |$)/, 'needs a cluster of its own; test/e2e/try.test.ts takes and undoes it'],
  [/^machinist top(?: |$)/, 'does not end; test/integration/top.test.ts presses its keys'],
  [/^machinist run(?!.*--help)/, 'does not end; test/e2e starts it'],
  [/\[-|…/, 'says what may stand where'],
  [
    /^curl -OJ|^kubectl (?:-n \S+ )?port-forward /,
    'no kubelet runs pods; test/integration/health-server.test.ts takes profiles',
  ],
  [/^kubectl .*\blogs /, 'no kubelet runs pods'],
  [
    /^kubectl taint .*critical-components/,
    'only an update in place leaves this taint; in-place-update.test.ts sees it',
  ],
  [/^promtool /, 'test/integration/prometheus.test.ts runs it'],
  [
    /examples\/sim\.yaml|mcd[ /]example|rollout status example|--for=delete mc --all/,
    'of the quick start, whose machines are others; layouts.test.ts takes its steps with the example',
  ],
  [
    /crds\/cluster-api|machines\.cluster\.x-k8s\.io/,
    'kubectl takes `machine` for theirs from then on; test/integration/cluster-api.test.ts applies and reads them',
  ],
  [/ironcore/, 'their names would stand before ours in kubectl; ironcore-crds.test.ts applies them'],
  [/annotate namespace cell-a /, 'a namespace of a cell; cells.test.ts annotates one'],
  [
    /two-namespaces|machinist-rescue|machines-(?:rescue|namespace)|get namespace machinist/,
    'a cluster of its own; namespace-deletion.test.ts takes these steps',
  ],
  [/apply -k deploy\/monitoring/, 'needs the operator of Prometheus; hack/check/monitoring.test.ts checks the rules'],
  [
    /cluster-autoscaler-status/,
    'no cluster-autoscaler runs here; docs/operations/autoscaler.md says with which it was tried',
  ],
];
