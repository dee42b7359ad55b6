/** The order in which a section of the changelog is read. */
const SECTIONS = ['Action required', 'New and changed', 'Fixed'];
const UNRELEASED = '## Unreleased';

/** The changelog in which what was not released yet is a version, and nothing is left. Throws Error where there is nothing to release. */
export function withRelease(changelog: string, version: string, date: string): string {
  if (changelog.includes(`\n## ${version} (`)) throw new Error(`CHANGELOG.md already has version ${version}`);
  const at = changelog.indexOf(`${UNRELEASED}\n`);
  const body = at < 0 ? '' : sectionAfter(changelog, at);
  if (!/^- /m.test(body)) throw new Error('CHANGELOG.md has nothing under Unreleased');
  const empty = SECTIONS.map((title) => `### ${title}\n`).join('\n');
  const rest = changelog.slice(at + UNRELEASED.length + 1 + body.length);
  const filled = parts(body).filter(({ text }) => text !== '');
  const released = filled.map(({ title, text }) => `### ${title}\n\n${text}\n`).join('\n');
  return `${changelog.slice(0, at)}${UNRELEASED}\n\n${empty}\n## ${version} (${date})\n\n${released}${rest === '' ? '' : `\n${rest}`}`;
}

/** What is published with a version: what its users must do comes first. */
export function releaseNotes(changelog: string, version: string): string {
  const heading = new RegExp(`^## ${version.replaceAll('.', '\\.')} \\(.*\\)$`, 'm').exec(changelog);
  if (heading === null) throw new Error(`CHANGELOG.md has no version ${version}`);
  const body = sectionAfter(changelog, heading.index);
  const introduction = body.split(/^### /m)[0]?.trim() ?? '';
  const rank = (title: string): number => SECTIONS.indexOf(title);
  const sorted = parts(body).toSorted((a, b) => rank(a.title) - rank(b.title));
  const text = sorted.map(({ title, text: lines }) => `## ${title}\n\n${lines}\n`).join('\n');
  return `# Machinist ${version}\n\n${introduction === '' ? '' : `${introduction}\n\n`}${text}`;
}

/** What follows a heading, up to the next one of its level. */
function sectionAfter(changelog: string, at: number): string {
  const start = changelog.indexOf('\n', at) + 1;
  const next = changelog.indexOf('\n## ', start - 1);
  return changelog.slice(start, next < 0 ? undefined : next + 1);
}

function parts(body: string): { readonly title: string; readonly text: string }[] {
  const [, ...sections] = body.split(/^### /m);
  return sections.map((section) => {
    const [title = '', ...lines] = section.split('\n');
    return { title, text: lines.join('\n').trim() };
  });
}
