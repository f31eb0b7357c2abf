//! Bars of parts that make a whole, as SVG.

use super::plot::{COLOURS, Drawn, Svg, key, svg};
use plotters::chart::ChartBuilder;
use plotters::prelude::{Rectangle, Text};
use plotters::style::colors::{BLACK, WHITE};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, TextStyle};

/// Of the room of a bar, how much is left at each side of it.
const BESIDE: f64 = 0.2;

/// Bars of parts, side by side, from 0 on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stack {
    /// What it shows.
    pub title: String,
    /// From below, and its unit.
    pub y: String,
    /// What the parts are, from below.
    pub parts: Vec<String>,
    /// What each bar is, and how much of each part it has.
    pub bars: Vec<(String, Vec<f64>)>,
}

impl Stack {
    /// As SVG.
    pub fn svg(&self) -> String {
        svg(|area| self.draw(area))
    }

    fn draw(&self, area: &Svg<'_>) -> Drawn {
        area.fill(&WHITE)?;
        let (area, legend) = super::plot::with_legend(area);
        let whole = |bar: &(String, Vec<f64>)| bar.1.iter().sum();
        // Axes of no length have no figures.
        let top = self.bars.iter().map(whole).fold(1e-3, f64::max) * 1.1;
        let right = self.bars.len().max(1) as f64;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..right, 0.0..top)?;
        let figure = |figure: &f64| super::plot::short(*figure);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .max_light_lines(0)
            .y_labels(5)
            .bold_line_style(BLACK.mix(0.12))
            .y_desc(&self.y)
            .x_labels(0)
            .y_label_formatter(&figure)
            .draw()?;
        for (at, (name, parts)) in self.bars.iter().enumerate() {
            let mut below = 0.0;
            for (part, colour) in parts.iter().zip(COLOURS.iter().cycle()) {
                let left = (at as f64 + BESIDE, below);
                below += part;
                let right = (at as f64 + 1.0 - BESIDE, below);
                chart.draw_series([Rectangle::new([left, right], colour.filled())])?;
            }
            let style = TextStyle::from(("sans-serif", 12));
            let style = style.pos(Pos::new(HPos::Center, VPos::Bottom));
            let name = Text::new(name.clone(), (at as f64 + 0.5, below), style);
            chart.draw_series([name])?;
        }
        let names = self.parts.iter().map(String::as_str);
        key(&legend, names.zip(COLOURS.iter().copied().cycle()))?;
        area.present()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_its_parts_one_above_the_other() {
        assert!(Stack::default().svg().starts_with("<svg"));
        let stack = Stack {
            title: "time".into(),
            y: "µs".into(),
            parts: vec!["network".into(), "disk".into()],
            bars: vec![
                ("1 client".into(), vec![3.0, 1.0]),
                ("16".into(), vec![6.0, 4.0]),
            ],
        };
        let svg = stack.svg();
        for text in ["time", "µs", "network", "disk", "1 client", "16"] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text}: {svg}");
        }
        // Where they are, and how high.
        let heights = |colour: &str| -> Vec<(f64, f64)> {
            let bars = svg.lines().filter(|line| {
                line.starts_with("<rect") && line.contains(&format!("fill=\"{colour}\""))
            });
            let number = |line: &str, name: &str| -> f64 {
                let value = line.split(&format!(" {name}=\"")).nth(1).unwrap();
                value.split('"').next().unwrap().parse().unwrap()
            };
            bars.map(|line| (number(line, "y"), number(line, "height")))
                .collect()
        };
        let (network, disk) = (heights("#0072B2"), heights("#E69F00"));
        assert_eq!((network.len(), disk.len()), (2, 2), "{svg}");
        for ((below, low), (above, high)) in network.iter().zip(&disk) {
            assert!((above + high - below).abs() <= 1.0, "{network:?} {disk:?}");
            assert!(*low > 0.0);
        }
        assert!(
            (network[1].1 / network[0].1 - 2.0).abs() < 0.1,
            "{network:?}"
        );
    }
}
