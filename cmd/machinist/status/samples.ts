import type { Sample } from '../../../pkg/fleet/alerts.ts';

const LINE = /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>.*)\})? (?<value>\S+)/;
const LABEL = /(?<name>\w+)="(?<value>(?:[^"\\]|\\.)*)"/g;

/** What a process answers on /metrics, in the text format of Prometheus. */
export function parseSamples(text: string): readonly Sample[] {
  return text.split('\n').flatMap((line) => {
    const { name, labels = '', value } = LINE.exec(line)?.groups ?? {};
    if (name === undefined || value === undefined) return [];
    const pairs = [...labels.matchAll(LABEL)].map(({ groups = {} }) => [
      groups['name'] ?? '',
      unescaped(groups['value']),
    ]);
    return [{ name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }];
  });
}

function unescaped(text = ''): string {
  return text.replaceAll(/\\(.)/g, (_all, character: string) => (character === 'n' ? '\n' : character));
}
