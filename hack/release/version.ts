/** Whether a text is a version that can follow another one. */
export function isLater(version: string, than: string): boolean {
  const [left, right] = [version, than].map((text) => (/^(\d+)\.(\d+)\.(\d+)$/.exec(text) ?? []).slice(1).map(Number));
  if (left?.length !== 3 || right?.length !== 3) return false;
  const at = left.findIndex((number, i) => number !== right[i]);
  return (left[at] ?? 0) > (right[at] ?? 0);
}

/** A file of this project with the version of a release, by what stands around the former one. */
export function withVersion(file: string, text: string, from: string, to: string): string {
  const version = from.replaceAll('.', '\\.');
  if (file === 'package.json') return text.replace(new RegExp(`^(  "version": )"${version}"`, 'm'), `$1"${to}"`);
  if (file === 'package-lock.json') {
    return text.replaceAll(new RegExp(`("name": "machinist",\\s+"version": )"${version}"`, 'g'), `$1"${to}"`);
  }
  if (file.endsWith('Chart.yaml')) {
    return text.replaceAll(new RegExp(`^((?:appV|v)ersion: )${version}$`, 'gm'), `$1${to}`);
  }
  // Tags of images, in manifests and in what pages show.
  return text.replaceAll(new RegExp(`\\b(machinist(?:-[a-z-]+)?:)${version}\\b`, 'g'), `$1${to}`);
}
