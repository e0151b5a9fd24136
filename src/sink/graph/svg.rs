//! Draws a flame graph: an SVG image of a tree of call paths, with a script for zoom and search.
//!
//! Each node is a bar whose width is its weight, on top of its caller's bar. The image needs only a browser. Without
//! scripts it still shows all bars, and their names and weights as tooltips.

use crate::request::Weight;
use crate::sink::call_tree::{NodeKind, NodeLayout, Tree};
use crate::text::escape;
use std::fmt::Write;
use std::hash::Hasher;

const SCRIPT: &str = include_str!("flamegraph.js");
const STYLE: &str = "text { font: 12px ui-monospace, monospace; pointer-events: none; } g[data-depth] { cursor: pointer; } g[data-depth]:hover rect { stroke: #000; } \
                     .above { opacity: 0.5; } .found rect { fill: #e040fb; } .button { cursor: pointer; } .button rect { fill: #fff; stroke: #999; } .button text { fill: #555; } .button:hover rect { stroke: #000; }";

/// The layout in pixels.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const BAR: u32 = 17;
const HEAD: u32 = 44;
const LETTER: f64 = 7.23;
/// Narrower bars are not drawn.
const NARROWEST: f64 = 0.1;

/// Returns the flame graph of a tree.
pub fn picture(tree: &Tree, title: &str, weight: Weight) -> String {
    let layout = tree.layout();
    let whole = layout[0].weight;
    let wide: Vec<&NodeLayout> = layout.iter().filter(|node| whole > 0 && share(node.weight, whole) * WIDTH >= NARROWEST).collect();
    let depth = wide.iter().map(|node| node.depth).max().unwrap_or(0);
    let height = HEAD + (depth + 1) * BAR + MARGIN as u32;
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" data-width=\"{WIDTH}\" data-letter=\"{LETTER}\" tabindex=\"0\">\n\
         <style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fdfdf8\"/>\n\
         <text x=\"{MARGIN}\" y=\"18\" style=\"font-weight: bold\">{}</text>\n\
         {}{}<text id=\"status\" x=\"{MARGIN}\" y=\"36\"></text>\n\
         <g transform=\"translate({MARGIN} 0)\">\n",
        WIDTH + 2.0 * MARGIN,
        text(title.as_bytes()),
        button("reset", WIDTH + MARGIN - 300.0, 116.0, "whole picture"),
        search_box(WIDTH + MARGIN - 170.0, 170.0),
    );
    for node in wide {
        bar(&mut svg, node, whole, height, weight);
    }
    let _ = write!(svg, "</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n");
    svg
}

/// Returns a button: unlike a bar it is white, with a border and round ends.
fn button(id: &str, x: f64, wide: f64, text: &str) -> String {
    format!(
        "<g id=\"{id}\" class=\"button\"><rect x=\"{x}\" y=\"8\" width=\"{wide}\" height=\"22\" rx=\"11\"/><text x=\"{}\" y=\"23\">{text}</text></g>\n",
        x + 12.0
    )
}

/// Returns a button with a magnifying glass at its right end.
fn search_box(x: f64, wide: f64) -> String {
    let (glass, button) = (x + wide - 20.0, button("search", x, wide, "find (Ctrl-F) ..."));
    let drawing = format!(
        "<circle cx=\"{glass}\" cy=\"17\" r=\"4.5\" fill=\"none\" stroke=\"#777\" stroke-width=\"1.5\"/><path d=\"M{} 20.5l4 4\" stroke=\"#777\" stroke-width=\"1.5\"/></g>",
        glass + 3.5
    );
    button.replacen("</g>", &drawing, 1)
}

fn bar(svg: &mut String, node: &NodeLayout, whole: u64, height: u32, weight: Weight) {
    let (left, width) = (share(node.left, whole), share(node.weight, whole));
    let (x, wide) = (left * WIDTH, width * WIDTH);
    let y = height - MARGIN as u32 - (node.depth + 1) * BAR;
    let name = if node.depth == 0 { "all".to_owned() } else { text(node.name) };
    let weighs = match weight {
        Weight::Time => format!("{}.{:06} ms", node.weight / 1_000_000, node.weight % 1_000_000),
        Weight::Count => format!("{} calls", node.weight),
    };
    let _ = writeln!(
        svg,
        "<g data-depth=\"{}\" data-left=\"{left:.9}\" data-width=\"{width:.9}\" data-name=\"{name}\"><title>{name}: {weighs}, {:.2}%</title>\
         <rect x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" rx=\"1\" fill=\"{}\"/><text x=\"{:.2}\" y=\"{}\">{}</text></g>",
        node.depth,
        100.0 * width,
        (wide - 0.3).max(0.2),
        BAR - 1,
        color(node),
        x + 3.0,
        y + BAR - 5,
        label(node, wide),
    );
}

/// Returns as much of the name as fits into the bar.
fn label(node: &NodeLayout, wide: f64) -> String {
    let letters = ((wide - 6.0) / LETTER) as usize;
    let name = if node.depth == 0 { "all".into() } else { shown(node.name) };
    match letters {
        0..3 => String::new(),
        _ if name.chars().count() <= letters => escaped(&name),
        _ => escaped(&name.chars().take(letters - 2).chain("..".chars()).collect::<String>()),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// Returns a bar's colour: warm for user frames, orange for kernel frames, blue for syscalls, grey for tasks. The shade
/// depends on the name, so that it is the same in every image.
fn color(node: &NodeLayout) -> String {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(node.name);
    let shade = (hasher.finish() >> 40) as u32 % 100;
    let (hue, saturation, light) = match node.kind {
        NodeKind::Task | NodeKind::Unknown => (60, 8, 80),
        NodeKind::User => (10 + shade * 35 / 100, 85, 62 + shade % 11),
        NodeKind::Kernel => (46 + shade % 9, 90, 58),
        NodeKind::Syscall => (200 + shade % 25, 65, 70),
    };
    format!("hsl({hue} {saturation}% {light}%)")
}

/// Escapes an untrusted name for the text of an SVG: printable, and without markup.
fn text(bytes: &[u8]) -> String {
    escaped(&shown(bytes))
}

fn shown(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    escape::plain(&mut out, bytes);
    String::from_utf8_lossy(&out).into_owned()
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::call_tree::NodeId;

    fn tree(paths: &[(&[&str], u64)]) -> Tree {
        let mut tree = Tree::new();
        for (path, weight) in paths {
            let end = path.iter().fold(NodeId::ROOT, |node, name| tree.child(node, name.as_bytes(), NodeKind::User));
            tree.add(end, *weight);
        }
        tree
    }

    #[test]
    fn bars_are_placed_on_their_callers() {
        let svg = picture(&tree(&[(&["sh", "main"], 3_000_000), (&["sh", "exit"], 1_000_000)]), "calls of sh", Weight::Time);
        assert!(svg.contains("data-depth=\"2\" data-left=\"0.250000000\" data-width=\"0.750000000\" data-name=\"main\""), "{svg}");
        assert!(svg.contains("<title>main: 3.000000 ms, 75.00%</title>"), "{svg}");
        assert!(svg.contains("<title>all: 4.000000 ms, 100.00%</title>"));
    }

    #[test]
    fn names_are_escaped_in_the_svg() {
        let svg = picture(&tree(&[(&["<script>\"&\x1b]]>"], 1)]), "a <b>", Weight::Count);
        assert!(!svg.contains("<script>\"") && svg.contains("data-name=\"&lt;script&gt;&quot;&amp;\\x1b]]&gt;\""), "{svg}");
        assert!(svg.contains("a &lt;b&gt;") && svg.contains("1 calls"));
    }

    #[test]
    fn an_empty_tree_is_a_valid_svg() {
        assert!(picture(&Tree::new(), "", Weight::Time).ends_with("</svg>\n"));
    }
}
