import { describe } from '../describe/description.ts';
import { renderDescription } from '../describe/render.ts';
import { shortTexts } from './short-texts.ts';

/** What `machinist describe` shows of a machine, with texts that are shortened. */
export function storyText(...[machine, events, nowMs, known]: Parameters<typeof describe>): string {
  return renderDescription(shortTexts(describe(machine, events, nowMs, known)), nowMs);
}
