import { existsSync } from 'node:fs';
import path from 'node:path';

/** The folder with package.json: two up in a checkout, and one up from the chunks of a bundle. */
export function installation(): string {
  const [bundle, checkout] = [path.resolve(import.meta.dirname, '..'), path.resolve(import.meta.dirname, '../..')];
  return existsSync(path.join(bundle, 'package.json')) ? bundle : checkout;
}
